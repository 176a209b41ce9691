"""Cameras whose stream is pulled, over real HTTP, well-behaved and not."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from loop_watch import watch_callbacks

from drivers.contract import DeviceConnected, DeviceLost, MessageRefused, PlateSeen
from drivers.http_session import DeviceAccount
from drivers.plates.axis import AXIS
from drivers.plates.dahua import DAHUA
from drivers.plates.hikvision import HIKVISION
from drivers.plates.stream import PlateStream
from simulation.far_ends.plate_stream import PICTURE, PlateStreamFarEnd, dahua_event, hikvision_alert, part

PASSWORD = "correct-horse-battery"
ACCOUNT = DeviceAccount("gateway", PASSWORD)
DIALECTS = {"hikvision": HIKVISION, "dahua": DAHUA}
SILENCE = 0.4


def reader(port, make, *, account=ACCOUNT, silence=SILENCE):
    return PlateStream(
        device_id=41, url=f"http://127.0.0.1:{port}", dialect=DIALECTS[make], account=account, silence_seconds=silence
    )


@pytest.fixture(params=["hikvision", "dahua"])
def make(request):
    return request.param


@pytest.fixture
def camera(running, listener, make):
    @asynccontextmanager
    async def start(**options):
        far_end = PlateStreamFarEnd(make=make, account=ACCOUNT)
        async with far_end.serve() as port, running(reader(port, make, **options).run(listener)):
            await listener.until(lambda: listener.of(DeviceConnected))
            yield far_end

    return start


def plates(listener):
    return [seen.plate for seen in listener.of(PlateSeen)]


async def test_plates_are_reported_once_and_at_once(camera, listener):
    async with camera() as far_end:
        far_end.stalled = True  # nothing follows that would end the part
        far_end.see("ab-12 cd", vehicle="7", times=2)
        await listener.until(lambda: plates(listener))
        far_end.stalled = False
        far_end.see("EF34", vehicle="8")
        await listener.until(lambda: len(plates(listener)) == 2)
    first, second = listener.of(PlateSeen)
    assert (first.device_id, first.plate, first.vehicle, first.direction) == (41, "AB12CD", "7", "approaching")
    assert 0.9 < first.confidence < 1.0
    assert (second.plate, second.vehicle) == ("EF34", "8")
    assert len(listener.of(DeviceConnected)) == 1
    assert not listener.of(DeviceLost)


async def test_any_pieces_and_a_changed_boundary(camera, listener, make):
    async with camera() as far_end:
        text = hikvision_alert("AB12", uuid="7") if make == "hikvision" else dahua_event("AB12", group=7)
        whole = part("text/plain", text, boundary="other") + part("image/jpeg", PICTURE, boundary="other")
        for place in range(0, len(whole), 401):
            far_end.send([whole[place : place + 401]])
            await asyncio.sleep(0)
        await listener.until(lambda: plates(listener) == ["AB12"])


async def test_stalled_stream_is_lost_within_its_budget_and_followed_again(camera, listener):
    async with camera() as far_end:
        far_end.stalled = True
        await listener.until(lambda: listener.of(DeviceLost))
        assert "heartbeat" in listener.of(DeviceLost)[0].reason
        far_end.stalled = False
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        far_end.see("AB12")
        await listener.until(lambda: plates(listener) == ["AB12"])


async def test_bytes_that_never_make_a_part_are_no_sign_of_life(camera, listener):
    async with camera() as far_end:
        far_end.stalled = True
        for _ in range(40):
            far_end.send([b"."])
            if listener.of(DeviceLost):
                break
            await asyncio.sleep(0.05)  # bytes keep coming for longer than the silence that the driver bears
        await listener.until(lambda: listener.of(DeviceLost))


async def test_half_a_part_is_no_reading(camera, listener, make):
    async with camera() as far_end:
        text = hikvision_alert("AB12") if make == "hikvision" else dahua_event("AB12")
        whole = part("text/plain", text, boundary="b")
        far_end.send([whole[: whole.index(b"AB12") + 3]])
        far_end.hang_up()
        await listener.until(lambda: listener.of(DeviceLost))
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        assert not plates(listener)


async def test_endless_junk_ends_the_stream(camera, listener):
    async with camera() as far_end:
        far_end.send([b"junk\n" * 20_000])
        await listener.until(lambda: listener.of(DeviceLost))
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)


async def test_unreadable_part_costs_itself_alone(camera, listener):
    async with camera() as far_end:
        far_end.send([part("text/plain", b"Error: try again", boundary=far_end.boundary)])
        far_end.see("AB12")
        await listener.until(lambda: plates(listener) == ["AB12"])
        assert not listener.of(DeviceLost)
        assert [one.raw for one in listener.of(MessageRefused)] == [b"Error: try again"]


async def test_wrong_password_is_said_and_not_tried_again_and_again(running, listener, make, said_aloud):
    far_end = PlateStreamFarEnd(make=make, account=ACCOUNT)
    wrong = DeviceAccount(ACCOUNT.username, "incorrect-horse")
    async with far_end.serve() as port, running(reader(port, make, account=wrong).run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
        await asyncio.sleep(0.5)  # somebody who tries again and again would have done it meanwhile
        assert far_end.guard.turned_down == 2
    (lost,) = listener.of(DeviceLost)
    assert "password" in lost.reason
    assert "incorrect-horse" not in lost.reason + said_aloud() + repr(wrong)


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="x"\r\nContent-Length: 0\r\n\r\n',
        b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
        b"RTSP/1.0 400 Bad\r\n\r\n",
        b"\xff\xfe\x00",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab",
        b"",
    ],
)
async def test_whatever_answers_is_a_reason_and_no_failure(running, listener, answer):
    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server, running(reader(server.sockets[0].getsockname()[1], "hikvision").run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
    assert listener.of(DeviceLost)[0].reason
    assert not listener.of(DeviceConnected)


async def test_other_answers_than_ok_are_said(running, listener):
    far_end = PlateStreamFarEnd(make="dahua", account=ACCOUNT)
    async with far_end.serve() as port, running(reader(port, "hikvision").run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
    assert "404" in listener.of(DeviceLost)[0].reason


async def test_stops_at_once_even_when_nothing_answers(listener, running, make):
    asked = asyncio.Event()

    async def mute(reader, writer):
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(reader(port, make).run(listener)):
        await asked.wait()


async def test_stops_at_once_in_the_middle_of_a_stream(camera, listener, make):
    async with camera() as far_end:
        text = hikvision_alert("AB12", uuid="7") if make == "hikvision" else dahua_event("AB12", group=7)
        whole = part("text/plain", text, boundary=far_end.boundary)
        far_end.send([whole + b"--b\r\nContent-Length: 100\r\n\r\nhalf"])
        await listener.until(lambda: plates(listener))


@pytest.mark.long("the loop's own delay, in real time")
async def test_loop_is_never_held_up(camera, listener):
    async with camera() as far_end:
        with watch_callbacks(limit=0.01) as watched:
            for number in range(20):
                picture = part("image/jpeg", PICTURE * 60, boundary=far_end.boundary, length=None if number % 2 else -1)
                far_end.send([picture[place : place + 65_536] for place in range(0, len(picture), 65_536)])
                far_end.see(f"AB{number}", vehicle=str(number + 1))
                await listener.until(lambda number=number: len(plates(listener)) > number)
    assert watched.worst() is None


def test_a_make_without_a_stream_is_refused():
    with pytest.raises(ValueError, match="no stream"):
        PlateStream(device_id=1, url="http://127.0.0.1:1", dialect=AXIS, account=ACCOUNT)
