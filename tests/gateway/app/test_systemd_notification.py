"""Messages to systemd, over a real datagram socket."""

import asyncio
import os
import socket
import uuid

import pytest
from set_machine import SetClock
from structlog.testing import capture_logs

from gateway.app.systemd import Notify
from gateway.app.watchdog import feed_watchdog
from gateway.runtime.supervision import Progress


class Systemd:
    """The receiving end."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.setblocking(False)

    async def heard(self):
        async with asyncio.timeout(30):
            data = await asyncio.get_running_loop().sock_recv(self.socket, 4096)
        return data.decode().split("\n")


@pytest.fixture(params=["path", "abstract"])
def systemd(request, tmp_path):
    address = str(tmp_path / "notify") if request.param == "path" else f"@edge-gateway-test-{uuid.uuid4()}"
    receiver = Systemd(address)
    yield receiver
    receiver.socket.close()


async def test_each_message_as_the_protocol_writes_it(systemd):
    notify = Notify(address=systemd.address)
    notify.ready("2 lanes")
    assert await systemd.heard() == ["READY=1", "STATUS=2 lanes"]
    notify.status("two\nlines  in one")
    assert await systemd.heard() == ["STATUS=two lines in one"]
    notify.feed("fine")
    assert await systemd.heard() == ["WATCHDOG=1", "STATUS=fine"]
    notify.stopping()
    assert await systemd.heard() == ["STOPPING=1", "STATUS=stopping"]


def test_the_environment_is_taken_so_that_children_stay_silent():
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/"}
    notify = Notify.take_from(environ)
    assert notify.watchdog_seconds == 20
    assert environ == {"HOME": "/"}


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_for_this_process_and_a_number(environ, seconds):
    with capture_logs():
        assert Notify.take_from(dict(environ)).watchdog_seconds == seconds


def test_without_systemd_nothing_happens():
    with capture_logs() as logs:
        notify = Notify.take_from({})
        notify.ready("fine")
        notify.stopping()
    assert logs == []


def test_an_address_of_no_known_form_is_said_and_left():
    with capture_logs() as logs:
        Notify.take_from({"NOTIFY_SOCKET": "vsock:2:1234"}).ready("fine")
    assert [entry["event"] for entry in logs] == ["notify_address_unknown"]


async def test_ready_is_sent_again_when_it_could_not_be_taken(tmp_path):
    address = str(tmp_path / "late")
    notify = Notify(address=address)
    with capture_logs() as logs:
        notify.ready("fine")
        notify.status("still")
    assert [entry["event"] for entry in logs] == ["notify_failed"], "said once"
    systemd = Systemd(address)
    notify.feed("well")
    assert await systemd.heard() == ["READY=1", "WATCHDOG=1", "STATUS=well"]
    notify.feed("well")
    assert await systemd.heard() == ["WATCHDOG=1", "STATUS=well"]
    systemd.socket.close()


def test_a_full_queue_does_not_hold_the_caller(systemd):
    notify = Notify(address=systemd.address)
    with capture_logs() as logs:
        for _ in range(5_000):
            notify.feed("x" * 400)
    assert [entry["event"] for entry in logs] == ["notify_failed"]


async def test_the_watchdog_is_fed_while_all_parts_move(tmp_path):
    systemd, clock = Systemd(str(tmp_path / "notify")), SetClock(0.0)
    progress = Progress(clock=clock)
    progress.expect("writer", within=3)
    progress.expect("bus north", within=3)
    notify = Notify(address=systemd.address, watchdog_seconds=0.04)
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as group:
            feeding = group.create_task(feed_watchdog(notify=notify, progress=progress, status=lambda: "fine"))
            assert await systemd.heard() == ["WATCHDOG=1", "STATUS=fine"]
            clock.seconds = 10
            while (message := await systemd.heard()) == ["WATCHDOG=1", "STATUS=fine"]:
                pass
            assert message == ["STATUS=stuck: bus north, writer"]
            assert await systemd.heard() == message, "hungry for as long as it is stuck"
            progress.beat("writer")
            progress.beat("bus north")
            while (message := await systemd.heard()) != ["WATCHDOG=1", "STATUS=fine"]:
                assert "WATCHDOG=1" not in message
            feeding.cancel()
    systemd.socket.close()
    assert [(entry["event"], entry["parts"]) for entry in logs] == [
        ("parts_stuck", ("bus north", "writer")),
        ("parts_moving_again", ("bus north", "writer")),
    ]
