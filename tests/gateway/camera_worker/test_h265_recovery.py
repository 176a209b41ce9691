"""H.265 without IDR pictures, from a camera written from RFC 2326 and RFC 7798 alone: what is recorded is true."""

from __future__ import annotations

import asyncio
import base64
import random
import struct
from contextlib import asynccontextmanager, suppress
from fractions import Fraction

import av
import pytest

from gateway.domain.footage import GapReason, WorkerCamera

pytestmark = pytest.mark.long("minutes of real streams")

RATE, SIZE, PICTURES = 25, (160, 96), 500
LATE = 40
"""So many pictures were sent before anybody joins."""
LARGEST = 700
"""Bytes of a packet, so that pictures are sent in fragments."""
GROUP = 30
CRA, RECOVERY_POINT = "open-gop=1:bframes=2:b-adapt=0", "intra-refresh=1:bframes=0"
RECOVERS_AFTER_A_GROUP = bytes.fromhex("4e010602078480")
"""A prefix SEI with a recovery point (H.265, D.2.8): recovery_poc_cnt 30, neither exact nor broken."""


def encoded(options: str) -> list[tuple[int, list[bytes]]]:
    """Pictures in decoding order: when each is shown, and its NAL units."""
    encoder = av.CodecContext.create("libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt = *SIZE, "yuv420p"
    encoder.time_base, encoder.framerate, encoder.gop_size = Fraction(1, RATE), Fraction(RATE), GROUP
    shared = f"keyint={GROUP}:min-keyint={GROUP}:scenecut=0:repeat-headers=1:info=0:log-level=none:pools=none"
    encoder.options = {"preset": "ultrafast", "x265-params": f"{shared}:frame-threads=1:{options}"}
    width, height = SIZE
    noise = random.Random(7).randbytes(400_000)
    packets = []
    for number in range(PICTURES):
        picture = av.VideoFrame(width, height, "yuv420p")
        for plane in picture.planes:
            rows = (noise[y * width + number * 3 :][:width] for y in range(plane.height))
            plane.update(b"".join(row.ljust(plane.line_size, b"\0")[: plane.line_size] for row in rows))
        picture.pts, picture.time_base = number, Fraction(1, RATE)
        packets += encoder.encode(picture)
    packets += encoder.encode(None)
    film = [(packet.pts, units_of(bytes(packet))) for packet in packets]
    if options == RECOVERY_POINT:
        for number in range(GROUP, PICTURES, GROUP):  # where the encoder begins to refresh anew
            film[number][1].insert(-1, RECOVERS_AFTER_A_GROUP)
    return film


def units_of(stream: bytes) -> list[bytes]:
    """The NAL units between start codes (H.265, annex B)."""
    return [unit.rstrip(b"\0") for unit in stream.split(b"\0\0\1") if unit.strip(b"\0")]


def payloads(units: list[bytes]) -> list[bytes]:
    """A picture's payloads: small units are aggregated, large ones fragmented (RFC 7798, 4.4.2 and 4.4.3)."""
    small = [unit for unit in units if len(unit) < 200]
    found = []
    if len(small) > 1:
        found.append(b"\x60\x01" + b"".join(struct.pack("!H", len(unit)) + unit for unit in small))
    else:
        found += small
    for unit in units:
        if len(unit) < 200:
            continue
        kind, body = unit[0] >> 1 & 0x3F, unit[2:]
        parts = [body[at : at + LARGEST] for at in range(0, len(body), LARGEST)]
        if len(parts) == 1:
            found.append(unit)
            continue
        for at, part in enumerate(parts):
            header = (at == 0) << 7 | (at == len(parts) - 1) << 6 | kind
            found.append(bytes((unit[0] & 0x81 | 49 << 1, unit[1], header)) + part)
    return found


class Camera:
    """Sends one film to all who play, each from the picture that is next. `sets` are told in the description alone."""

    def __init__(self, film: list[tuple[int, list[bytes]]]) -> None:
        self._film = film
        self.players: set[asyncio.StreamWriter] = set()
        self._next = 0

    def description(self) -> bytes:
        sets = {unit[0] >> 1: base64.b64encode(unit).decode() for unit in self._film[0][1] if 32 <= unit[0] >> 1 <= 34}
        told = f"sprop-vps={sets[32]};sprop-sps={sets[33]};sprop-pps={sets[34]}"
        lines = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=far end", "t=0 0", "m=video 0 RTP/AVP 104"]
        lines += ["a=rtpmap:104 H265/90000", f"a=fmtp:104 {told}", "a=control:stream=0", ""]
        return "\r\n".join(lines).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                while (first := await reader.readexactly(1)) == b"$":
                    await reader.readexactly(struct.unpack("!xH", await reader.readexactly(3))[0])
                head = first + await reader.readuntil(b"\r\n\r\n")
                method = head.split(b" ", 1)[0].decode("latin-1")
                cseq = head.lower().split(b"cseq:", 1)[1].split(b"\r\n", 1)[0].strip().decode()
                more, body = "", b""
                if method == "DESCRIBE":
                    body = self.description()
                    more = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
                elif method == "SETUP":
                    more = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 12345678;timeout=60\r\n"
                elif method == "OPTIONS":
                    more = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
                writer.write(f"RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n{more}\r\n".encode() + body)
                if method == "PLAY":
                    self.players.add(writer)
                if method == "TEARDOWN":
                    break
        self.players.discard(writer)
        writer.close()

    async def send(self) -> None:
        sequence, begun = 65_500, asyncio.get_running_loop().time()
        for number, (shown, units) in enumerate(self._film):
            found = payloads([unit for unit in units if not 32 <= unit[0] >> 1 <= 34])
            for at, payload in enumerate(found):
                marker = (at == len(found) - 1) << 7
                time = 0xFFFF0000 + shown * 90_000 // RATE & 0xFFFFFFFF
                packet = struct.pack("!BBHII", 0x80, marker | 104, sequence & 0xFFFF, time, 77) + payload
                for player in tuple(self.players):
                    player.write(struct.pack("!cBH", b"$", 0, len(packet)) + packet)
                sequence += 1
            due = begun + max(0, number - LATE) / RATE
            await asyncio.sleep(due - asyncio.get_running_loop().time())  # the pace of the camera


@asynccontextmanager
async def sending(film):
    camera = Camera(film)
    server = await asyncio.start_server(camera.answer, "127.0.0.1", 0)
    async with server, asyncio.TaskGroup() as group:
        task = group.create_task(camera.send())
        yield f"rtsp://127.0.0.1:{server.sockets[0].getsockname()[1]}/far"
        task.cancel()
        for player in tuple(camera.players):
            player.transport.abort()


def shown(stream: bytes) -> list[bytes]:
    """Decode an Annex B stream: the pictures in the order they are shown in."""
    decoder = av.CodecContext.create("hevc", "r")
    packets = [*decoder.parse(stream), *decoder.parse(b"")]
    frames = [frame for packet in [*packets, None] for frame in decoder.decode(packet)]
    return [pixels(frame) for frame in frames]


def pixels(frame: av.VideoFrame) -> bytes:
    """All that is seen of a picture, without the padding of its rows."""
    rows = ((bytes(plane), plane.line_size, plane.width, plane.height) for plane in frame.planes)
    return b"".join(data[y * size : y * size + width] for data, size, width, height in rows for y in range(height))


def shown_of(file) -> list[bytes]:
    with av.open(str(file), "r", format="mpegts") as source:
        return [pixels(frame) for frame in source.decode(video=0)]


def apart(one: bytes, other: bytes) -> float:
    """By how much two pictures differ on average, of 255."""
    return sum(abs(a - b) for a, b in zip(one[::7], other[::7], strict=True)) / len(one[::7])


@pytest.mark.parametrize(
    ("options", "unseen", "worst"),
    [(CRA, 2, 0.0), (RECOVERY_POINT, GROUP, 20.0)],  # an encoder that refreshes by and by is near, never equal
    ids=["cra", "recovery_point"],
)
async def test_what_is_recorded_decodes_to_the_cameras_own_pictures(start_worker, tmp_path, options, unseen, worst):
    """`unseen`: pictures that decoders leave out at the beginning, since they need what came before it."""
    film = await asyncio.to_thread(encoded, options)
    whole = shown(b"".join(b"\0\0\0\1" + unit for _, units in film for unit in units))
    assert apart(whole[100], whole[101]) > 60, "pictures differ"
    assert not any(16 <= unit[0] >> 1 <= 20 for _, units in film[1:] for unit in units), "one IDR, before anybody joins"
    async with sending(film) as url:
        worker = await start_worker()
        await worker.assign(WorkerCamera(camera_id=1, url=url, segment_seconds=1.0))
        await worker.until(lambda: len(worker.segments()) >= 5)
        segments = worker.segments()[:5]
    assert [segment.gap for segment in segments] == [GapReason.STARTED, *[GapReason.NONE] * 4]
    assert {segment.entry for segment in segments} == {"recovery"}
    joined = tmp_path / "joined.ts"
    joined.write_bytes(b"".join((worker.media / segment.path).read_bytes() for segment in segments))
    recorded = await asyncio.to_thread(shown_of, joined)
    assert len(recorded) == sum(segment.frames for segment in segments) - unseen, "no picture is missing or doubled"
    begin = min(range(len(whole)), key=lambda number: apart(whole[number], recorded[0]))
    assert max(apart(*pair) for pair in zip(recorded, whole[begin:], strict=False)) <= worst
    assert segments[0].whole_after == (GROUP * 1_000_000 // RATE if options == RECOVERY_POINT else 0)
