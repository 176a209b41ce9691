"""A simulated plate camera with a stream: Hikvision's alert stream, or Dahua's snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import Literal

from aiohttp import web

from drivers.http_session import DeviceAccount
from drivers.plates.dahua import DAHUA
from drivers.plates.hikvision import HIKVISION
from simulation.far_ends.http_device import DigestGuard, on_loopback

PICTURE = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 16 + b"\r\n--not the boundary\r\n" + b"\xff\xd9"

Make = Literal["hikvision", "dahua"]
_BOUNDARY = {"hikvision": "boundary", "dahua": "myboundary"}
_MOST_WAITING = 64


def hikvision_alert(plate: str, *, uuid: str = "", confidence: int = 95, kind: str = "ANPR") -> bytes:
    """Make an EventNotificationAlert."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<EventNotificationAlert version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema">\n'
        "<ipAddress>192.0.2.64</ipAddress>\n<channelID>1</channelID>\n"
        "<dateTime>2026-05-07T17:48:03.847+02:00</dateTime>\n"
        f"<eventType>{kind}</eventType>\n<eventState>active</eventState>\n"
        f"<ANPR>\n<licensePlate>{plate}</licensePlate>\n<line>1</line>\n<direction>forward</direction>\n"
        f"<confidenceLevel>{confidence}</confidenceLevel>\n</ANPR>\n<UUID>{uuid}</UUID>\n"
        "</EventNotificationAlert>\n"
    ).encode()


def hikvision_heartbeat() -> bytes:
    """Make the part that an alert stream sends when nothing happens."""
    return (
        b'<EventNotificationAlert version="2.0"><eventType>videoloss</eventType>'
        b"<eventState>inactive</eventState></EventNotificationAlert>\r\n"
    )


def dahua_event(plate: str, *, group: int = 0, confidence: int = 240) -> bytes:
    """Make the text of a TrafficJunction."""
    lines = (
        "Events[0].EventBaseInfo.Code=TrafficJunction",
        "Events[0].EventBaseInfo.Action=Pulse",
        f"Events[0].GroupID={group}",
        f"Events[0].EventID={group}",
        "Events[0].UTC=1778168883",
        f"Events[0].Object.Text={plate}",
        f"Events[0].Object.Confidence={confidence}",
        f"Events[0].TrafficCar.PlateNumber={plate}",
        "Events[0].VehicleDirection=Head",
    )
    return "\r\n".join(lines).encode() + b"\r\n"


def axis_message(plate: str, *, car: int, state: str = "new", packet: int = 0, direction: str = "unknown") -> bytes:
    """Return one message of the License Plate Verifier."""
    said = {
        "packetCounter": str(packet),
        "carID": str(car),
        "carState": state,
        "carMoveDirection": direction,
        "plateUTF8": plate,
        "plateConfidence": "0.868800",
        "imageType": "plate",
        "imageArray": "/9j/" * 8,
    }
    return json.dumps(said).encode()


def recognizer_message(plate: str, *, camera: str = "entry", stamp: str = "2026-05-07T17:48:03Z") -> bytes:
    """Make a message of Plate Recognizer's webhook."""
    result = {
        "plate": plate.lower(),
        "score": 0.91,
        "dscore": 0.84,
        "candidates": [{"plate": plate.lower(), "score": 0.91}, {"plate": "zz99zz", "score": 0.4}],
        "region": {"code": "gb", "score": 0.41},
        "vehicle": {"type": "Sedan", "score": 0.8},
        "direction": 210,
    }
    hook = {"target": "http://gateway", "id": camera, "event": "recognition"}
    return json.dumps({"hook": hook, "data": {"camera_id": camera, "timestamp": stamp, "results": [result]}}).encode()


def part(content_type: str, body: bytes, *, boundary: str = "boundary", length: int | None = -1) -> bytes:
    """Return one part of a body. `length` is its Content-Length: -1 for the true one, None to leave it out."""
    said = "" if length is None else f"Content-Length: {len(body) if length < 0 else length}\r\n"
    return f"--{boundary}\r\nContent-Type: {content_type}\r\n{said}\r\n".encode() + body + b"\r\n"


class PlateStreamFarEnd:
    """One camera with an account. `serve` gives its port; use it as a context.

    Args:
        make: the camera's make.
        account: the account that may read its stream.
        heartbeat_seconds: the interval between two heartbeats.
    """

    def __init__(self, *, make: Make, account: DeviceAccount, heartbeat_seconds: float = 0.05) -> None:
        self._make = make
        self._heartbeat = heartbeat_seconds
        self._followers: set[asyncio.Queue[bytes | None]] = set()
        self._seen = 0
        self.guard = DigestGuard(account=account)
        self.stalled = False
        self.boundary = _BOUNDARY[make]

    @property
    def followers(self) -> int:
        """The number of open streams."""
        return len(self._followers)

    def see(self, plate: str, *, vehicle: str = "", times: int = 1) -> None:
        """Bring a vehicle into view: send its message with a picture, `times` times."""
        self._seen += 1
        if self._make == "hikvision":
            text = part("application/xml", hikvision_alert(plate, uuid=vehicle), boundary=self.boundary)
        else:
            text = part("text/plain", dahua_event(plate, group=int(vehicle or self._seen)), boundary=self.boundary)
        for _ in range(times):
            self.send((text, part("image/jpeg", PICTURE, boundary=self.boundary)))

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send raw bytes, piece by piece, on every stream."""
        for piece in pieces:
            for follower in self._followers:
                with contextlib.suppress(asyncio.QueueFull):  # a follower that does not read misses it, as in life
                    follower.put_nowait(piece)

    def hang_up(self) -> None:
        """End every stream."""
        for follower in self._followers:
            follower.put_nowait(None)

    @contextlib.asynccontextmanager
    async def serve(self, *, port: int = 0) -> AsyncIterator[int]:
        """Serve on a port of this machine; 0 takes a free one."""
        app = web.Application()
        path = (HIKVISION if self._make == "hikvision" else DAHUA).stream_path.partition("?")[0]
        app.router.add_get(path, self._stream)
        async with on_loopback(app, port=port) as served:
            try:
                yield served
            finally:
                self.hang_up()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if (challenge := self.guard.challenge(request)) is not None:
            return challenge
        declared = f"multipart/mixed; boundary={_BOUNDARY[self._make]}"
        response = web.StreamResponse(headers={"Content-Type": declared, "Connection": "close"})
        await response.prepare(request)
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_MOST_WAITING)
        self._followers.add(waiting)
        try:
            while (piece := await self._next(waiting)) is not None:
                if piece:
                    await response.write(piece)
        except ConnectionError:
            return response  # the follower is gone
        finally:
            self._followers.discard(waiting)
        return response

    async def _next(self, waiting: asyncio.Queue[bytes | None]) -> bytes | None:
        try:
            async with asyncio.timeout(self._heartbeat):
                return await waiting.get()
        except TimeoutError:
            if self.stalled:
                return b""
        if self._make == "hikvision":
            return part("application/xml", hikvision_heartbeat(), boundary=self.boundary)
        return part("text/plain", b"Heartbeat", boundary=self.boundary)
