"""Cameras that push to one listener, over real HTTP."""

import asyncio
import io
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from waiting import until

from drivers.contract import DeviceConnected, DeviceLost, MessageRefused, PlateSeen
from drivers.plates.axis import AXIS
from drivers.plates.hikvision import HIKVISION
from drivers.plates.listener import PushListener
from drivers.plates.plate_recognizer import plate_recognizer
from drivers.plates.pushed import PushedPlates
from simulation.far_ends.plate_stream import PICTURE, axis_message, hikvision_alert, part, recognizer_message

CAPTURES = Path(__file__).with_name("captures")
TOKEN = "sesame-open-wide"
MULTIPART = {"Content-Type": "multipart/form-data; boundary=something-else"}


class Site:
    """The listener, and a session towards it."""

    def __init__(self, port, session):
        self.url = f"http://127.0.0.1:{port}/plates"
        self.session = session

    async def push(self, device, body, *, token=TOKEN, **options):
        query = {"token": token} if token else {}
        sent = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.session.post(f"{self.url}/{device}", data=sent, params=query, **options) as answer:
            return answer.status


def cameras(**options):
    options = {"token": TOKEN} | options
    return [
        PushedPlates(device_id=41, dialect=AXIS, **options),
        PushedPlates(device_id=42, dialect=HIKVISION, **options),
        PushedPlates(device_id=43, dialect=plate_recognizer(camera="entry"), **options),
    ]


@pytest.fixture
def site(running, listener):
    @asynccontextmanager
    async def start(idle_seconds=10.0, **options):
        pushing = cameras(**options)
        listening = PushListener(host="127.0.0.1", port=0, cameras=pushing, idle_seconds=idle_seconds)
        drivers = [camera.run(listener) for camera in pushing]
        async with running(listening.run(), *drivers), aiohttp.ClientSession() as session:
            await until(lambda: listening.port)
            yield Site(listening.port, session)

    return start


def plates(listener):
    return [(seen.device_id, seen.plate) for seen in listener.of(PlateSeen)]


async def test_each_make_is_heard(site, listener):
    async with site() as gateway:
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 3)
        assert await gateway.push(41, axis_message("AB-12", car=5)) == 200
        assert await gateway.push(42, (CAPTURES / "hikvision-push.bin").read_bytes(), headers=MULTIPART) == 200
        assert await gateway.push(42, hikvision_alert("CD34", uuid="2")) == 200
        form = aiohttp.FormData()
        form.add_field("json", recognizer_message("EF56").decode())
        form.add_field("upload", PICTURE, content_type="image/jpeg", filename="a.jpg")
        assert await gateway.push(43, form) == 200
    assert plates(listener) == [(41, "AB12"), (42, "AB12CDE"), (42, "CD34"), (43, "EF56")]


async def test_plate_that_flips_is_read_twice_and_the_car_that_left_no_more(site, listener):
    async with site() as gateway:
        await gateway.push(41, axis_message("AB12", car=5, packet=1))
        await gateway.push(41, axis_message("A812", car=5, state="update", packet=2, direction="in"))
        await gateway.push(41, axis_message("A812", car=5, state="update", packet=2, direction="in"))
        await gateway.push(41, axis_message("A812", car=5, state="lost", packet=3))
        await gateway.push(41, axis_message("A812", car=5, state="update", packet=4))
        await gateway.push(41, axis_message("CD34", car=6, packet=5))
    seen = [(one.plate, one.vehicle, one.direction) for one in listener.of(PlateSeen)]
    assert seen == [("AB12", "5", ""), ("A812", "5", "approaching"), ("CD34", "6", "")]


async def test_nobody_else_may_push(site, listener, said_aloud):
    async with site() as gateway:
        body = axis_message("AB12", car=5)
        assert await gateway.push(41, body, token="") == 403
        assert await gateway.push(41, body, token="sesame-open-wiDe") == 403
        assert await gateway.push(41, body, token="", headers={"Authorization": "Bearer wrong"}) == 403
        assert await gateway.push(44, body) == 403
        assert not plates(listener)
        refused = listener.of(MessageRefused)
        assert [(one.device_id, one.raw) for one in refused] == 3 * [(41, b"")]
        assert {one.reason for one in refused} == {"a push from 127.0.0.1 had no token, or another one"}
        assert await gateway.push(41, body, token="", headers={"Authorization": f"Token {TOKEN}"}) == 200
    assert plates(listener) == [(41, "AB12")]
    aloud = said_aloud()
    assert TOKEN not in aloud
    assert "sesame" not in aloud


async def test_source_counts_besides_the_token(site, listener):
    async with site(source="192.0.2.7") as gateway:
        assert await gateway.push(41, axis_message("AB12", car=5)) == 403
    async with site(source="127.0.0.1", token="") as gateway:
        assert await gateway.push(41, axis_message("AB12", car=5), token="") == 200
    assert plates(listener) == [(41, "AB12")]


def test_source_in_either_writing():
    camera = PushedPlates(device_id=1, dialect=AXIS, source="192.0.2.7")
    assert not camera.objection(address="::ffff:192.0.2.7", token="")
    assert "192.0.2.8" in camera.objection(address="192.0.2.8", token="")
    assert camera.objection(address="", token="")


def test_camera_that_anyone_could_be_is_refused():
    with pytest.raises(ValueError, match="source or a token"):
        PushedPlates(device_id=1, dialect=AXIS)


@pytest.mark.parametrize(
    ("device", "body", "headers"),
    [
        (41, b"nonsense", {}),
        (41, b"", {}),
        (41, b"x" * (5 * 1024 * 1024), {}),
        (42, b"<!DOCTYPE a><EventNotificationAlert/>", {}),
        (42, b"no parts at all", MULTIPART),
        (42, b"--b\r\nContent-Type: text/xml\r\n\r\n<EventNotificationAlert>half", MULTIPART),
        (42, b"--b\r\n\r\n" + b"x" * 100_000, MULTIPART),
    ],
)
async def test_what_is_no_message_is_refused_and_harms_nobody(site, listener, device, body, headers):
    async with site() as gateway:
        assert await gateway.push(device, body, headers=headers) == 400
        assert await gateway.push(41, axis_message("AB12", car=5)) == 200
    assert plates(listener) == [(41, "AB12")]


async def test_pictures_inside_json_are_read_aside(site, listener):
    body = axis_message("AB12", car=5).replace(b'"imageArray": "', b'"imageArray": "' + b"A" * 2_000_000)
    async with site() as gateway:
        assert await gateway.push(41, body) == 200
    assert plates(listener) == [(41, "AB12")]


async def test_flood_of_parts_is_refused_and_the_plate_before_it_counts(site, listener):
    flood = part("image/jpeg", b"\xff\xd8") * 300
    async with site() as gateway:
        assert await gateway.push(42, flood, headers=MULTIPART) == 400
        assert "200 parts" in listener.of(MessageRefused)[-1].reason
        alert = part("text/xml", hikvision_alert("AB12", uuid="1"))
        assert await gateway.push(42, alert + flood, headers=MULTIPART) == 200
    assert plates(listener) == [(42, "AB12")]


async def test_message_that_never_ends_holds_up_nobody(site, listener):
    async with site() as gateway:
        port = int(gateway.url.split(":")[2].split("/")[0])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST /plates/41?token={TOKEN} HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n".encode())
        await writer.drain()
        assert await gateway.push(41, axis_message("AB12", car=5)) == 200
    writer.close()  # half a message keeps nobody from stopping either
    assert plates(listener) == [(41, "AB12")]


async def test_sender_of_parts_byte_by_byte(site, listener):
    async def slowly():
        for byte in part("text/xml", hikvision_alert("AB12", uuid="1")) + b"--boundary--\r\n":
            yield bytes([byte])

    async with site() as gateway:
        assert await gateway.push(42, slowly(), headers=MULTIPART) == 200
    assert plates(listener) == [(42, "AB12")]


class Cut:
    """A connection that pushes to a camera piece by piece."""

    def __init__(self, gateway, device, *, length=100_000, headers=""):
        self._port = int(gateway.url.split(":")[2].split("/")[0])
        self._head = (
            f"POST /plates/{device}?token={TOKEN} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{headers}"
            "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        )

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.writer.write(self._head.encode())
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()


async def test_plate_is_reported_before_the_pictures_behind_it_have_come(site, listener):
    async with site() as gateway, Cut(gateway, 42) as camera:
        camera.writer.write(part("text/xml", hikvision_alert("AB12", uuid="1"), boundary="x"))
        camera.writer.write(b"--x\r\nContent-Type: image/jpeg\r\nContent-Length: 90000\r\n\r\n\xff\xd8")
        await listener.until(lambda: plates(listener) == [(42, "AB12")])
        camera.writer.write(b"\xff" * 50_000)
        camera.writer.transport.abort()
        assert await gateway.push(42, hikvision_alert("CD34", uuid="2")) == 200
    assert plates(listener) == [(42, "AB12"), (42, "CD34")]
    assert not listener.of(MessageRefused), "what it lost is a picture"


@pytest.mark.parametrize(
    ("device", "text", "plate"),
    [
        (41, axis_message("AB12", car=5), "AB12"),
        (42, hikvision_alert("AB12", uuid="1"), "AB12"),
        (41, axis_message("AB12", car=5)[:-3], None),
        (42, hikvision_alert("AB12", uuid="1")[:-3], None),
    ],
)
async def test_cut_connection_loses_no_reading_that_had_come(site, listener, device, text, plate):
    async with site() as gateway:
        for head in (b"", b"--x\r\nContent-Type: text/plain\r\n\r\n"):
            async with Cut(gateway, device) as camera:
                camera.writer.write(head + text)
                await camera.writer.drain()
                camera.writer.close()
            kind = PlateSeen if plate and not head else MessageRefused
            if plate is None or not head:
                await listener.until(lambda kind=kind: listener.of(kind))
        if plate is None:
            await listener.until(lambda: len(listener.of(MessageRefused)) == 2)
    assert plates(listener) == ([(device, plate)] if plate else [])


async def test_message_that_stands_still_is_answered_and_what_came_of_it_counts(site, listener):
    async with site(idle_seconds=0.2) as gateway, Cut(gateway, 41) as camera, Cut(gateway, 42) as silent:
        camera.writer.write(axis_message("AB12", car=5))
        assert b" 200 " in await camera.reader.readline()
        silent.writer.write(b"--x\r\n\r\n")
        assert b" 400 " in await silent.reader.readline()
    assert plates(listener) == [(41, "AB12")]
    (refused,) = listener.of(MessageRefused)
    assert (refused.device_id, refused.reason) == (42, "a message that stood still for 0.2 s")


@pytest.mark.parametrize("path", ["/plates/44", "/plates/41/more", "/", "/hik/41"])
async def test_camera_that_pushes_to_another_path_is_told_by_its_source(site, listener, path):
    async with site(source="127.0.0.1") as gateway:
        base = gateway.url.removesuffix("/plates")
        async with gateway.session.post(f"{base}{path}?token={TOKEN}", data=b"x") as answer:
            assert answer.status == 403
    refused = listener.of(MessageRefused)
    assert {(one.device_id, one.raw) for one in refused} == {(n, f"POST {path}".encode()) for n in (41, 42, 43)}


async def test_path_may_end_in_a_slash_and_some_cameras_put(site, listener):
    async with site() as gateway:
        base = f"{gateway.url}/41"
        async with gateway.session.post(f"{base}/?token={TOKEN}", data=axis_message("AB12", car=5)) as answer:
            assert answer.status == 200
        async with gateway.session.put(f"{base}?token={TOKEN}", data=axis_message("CD34", car=6)) as answer:
            assert answer.status == 200
    assert plates(listener) == [(41, "AB12"), (41, "CD34")]


async def test_body_packed_wrong_is_refused(site, listener):
    async with site() as gateway:
        assert await gateway.push(41, b"no gzip", headers={"Content-Encoding": "gzip"}) == 400
    assert [one.device_id for one in listener.of(MessageRefused)] == [41]


async def test_several_events_of_one_push_are_each_read_and_told(site, listener):
    alerts = [hikvision_alert(plate, uuid=plate) for plate in ("AB12", "CD?4", "EF56")]
    async with site() as gateway:
        assert await gateway.push(42, b"\r\n".join(alerts), headers={"Content-Type": "application/xml"}) == 200
    assert plates(listener) == [(42, "AB12"), (42, "EF56")]
    (refused,) = listener.of(MessageRefused)
    assert "U+003F" in refused.reason


async def test_silent_camera_is_lost_within_its_budget_and_back_with_its_first_word(site, listener):
    async with site(silence_seconds=0.3) as gateway:
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 3)
        assert await gateway.push(43, b'{"hook": {"event": "heartbeat"}}') == 200
        await listener.until(lambda: any(one.device_id == 43 for one in listener.of(DeviceLost)))
        await listener.until(lambda: len(listener.of(DeviceLost)) == 3)
        await gateway.push(43, recognizer_message("AB12"))
    assert [one.device_id for one in listener.of(DeviceConnected)][:3] == [41, 42, 43]
    assert listener.of(DeviceConnected)[-1].device_id == 43
    assert plates(listener) == [(43, "AB12")]


async def test_taken_port_is_said_and_tried_again(running, listener):
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    pushing = cameras()
    listening = PushListener(host="127.0.0.1", port=port, cameras=pushing)
    async with running(listening.run(), *(camera.run(listener) for camera in pushing)):
        await listener.until(lambda: len(listener.of(DeviceLost)) == 3)
        assert str(port) in listener.of(DeviceLost)[0].reason
        taken.close()
        await taken.wait_closed()
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 3)


async def test_message_before_the_driver_runs_is_not_taken(running):
    listening = PushListener(host="127.0.0.1", port=0, cameras=cameras())
    async with running(listening.run()), aiohttp.ClientSession() as session:
        await until(lambda: listening.port)
        assert await Site(listening.port, session).push(41, axis_message("AB12", car=5)) == 503


async def test_silent_connections_and_half_heads_keep_no_camera_out(running, listener, monkeypatch):
    """Also those of the camera's own address: some cameras leave what they opened."""
    monkeypatch.setattr("drivers.listening.places.SLOW_SECONDS", 0.0)
    pushing = cameras(source="127.0.0.1")
    port = PushListener(host="127.0.0.1", port=0, cameras=pushing)
    drivers = [camera.run(listener) for camera in pushing]
    held = []
    async with running(port.run(), *drivers), aiohttp.ClientSession() as session:
        await until(lambda: port.port)
        for number in range(120):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port.port, local_addr=(f"127.0.0.{number % 6 + 1}", 0)
            )
            writer.write((b"", b"POST /plates/41 HTTP/1.1\r\nHost: x\r\nX: y")[number % 2])
            held.append(writer)
        assert port.crowd is not None
        assert await Site(port.port, session).push(41, axis_message("AB-12", car=5)) == 200
    for writer in held:
        writer.transport.abort()


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /plates/41 HTTP/1.1\r\nHost: x\r\nX: " + b"_" * 8_000 + b"\x01\r\n\r\n",
        b"POST /plates/41 " + b"_" * 8_000 + b"\r\n\r\n",
        b"POST /plates/41 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"_" * 8_000 + b"\r\n",
        b"POST /plates/41 HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"_" * 8_000 + b"\r\n\r\n",
        b"POST /plates/41 HTTP/1.1\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_no_byte_of_it_logged(site, sent, caplog):
    async with site() as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.split(":")[2].partition("/")[0]))
        writer.write(sent)
        async with asyncio.timeout(30):
            assert (await reader.read()).split()[1] in {b"400", b"403"}
        writer.close()
    assert "____" not in caplog.text
