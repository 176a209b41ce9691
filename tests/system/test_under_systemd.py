"""A whole gateway as systemd sees it: READY when lanes are under control, WATCHDOG while it moves on, STOPPING."""

from __future__ import annotations

import socket

import pytest
from forked import done

pytestmark = pytest.mark.long("whole gateways, by their own watchdog's pace")


@pytest.fixture
def notices(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(50)  # a gateway's first word: it starts beside other work
        yield listening


def test_ready_watchdog_and_stopping(make_site, notices):
    site = make_site(start=False)
    address = notices.getsockname()
    site.start_gateway(NOTIFY_SOCKET=address, WATCHDOG_USEC="2000000")
    heard = []
    while heard.count("WATCHDOG=1") < 3 or "READY=1" not in heard:
        heard += notices.recv(4096).decode().splitlines()
    assert any(line.startswith("STATUS=Demo car park: 3 lanes") for line in heard)
    site.stop_gateway()
    notices.settimeout(0.2)
    while True:
        try:
            heard += notices.recv(4096).decode().splitlines()
        except TimeoutError:
            break
    assert "STOPPING=1" in heard


def test_lanes_work_while_somebody_else_has_the_port(make_site, notices, wait_until):
    site = make_site(start=False)
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", site.port))
        squatter.listen()
        site.spawn_gateway(NOTIFY_SOCKET=notices.getsockname(), WATCHDOG_USEC="2000000")
        heard: list[str] = []
        while "READY=1" not in heard or not any(line.startswith("STATUS=") and "port" in line for line in heard):
            heard += notices.recv(4096).decode().splitlines()
        wait_until(lambda: "lanes_ready_without_interface" in site.tail(), within=5, why="the log says so")
        assert "gateway_ready" not in site.log.read_text(), "nobody could ask it anything"
    wait_until(site.up, within=15, why="the interface is served once the port is free")
    wait_until(lambda: "gateway_ready" in site.log.read_text(), within=5, why="now it is ready")


def test_a_second_gateway_on_the_same_data_is_refused_in_one_sentence(make_site):
    site = make_site()
    second = done("gateway", "run", site.site, "--data", site.data)
    assert second.returncode == 2
    assert str(site.gateway.pid) in second.stderr
    assert "Traceback" not in second.stderr
    assert site.api.is_ready()
