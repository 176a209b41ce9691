"""One viewer's RTSP connection: it answers requests while a second task sends packets."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from drivers.contract import ProtocolViolation
from drivers.listening.places import HEAD_SECONDS, Place, Places, Stage
from drivers.rtsp.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from drivers.rtsp.packetizer import Packetizer, SoundPacketizer, sender_report
from drivers.rtsp.server.messages import (
    LONGEST_HEAD,
    METHODS,
    SOUND_TRACK,
    TRACK,
    AskedTransport,
    Credentials,
    Proof,
    RtspAnswer,
    RtspRequest,
    may_be_served,
    number,
    parse_request,
    parse_transport,
    proof_of,
    session_description,
)
from drivers.throttle import Throttle

_REPORT_TICKS = 5 * TICKS_PER_SECOND
_BEGIN_SECONDS = 1_600_000_000
"""The time in sender reports at presentation time 0, the same for both tracks. It is no wall time."""

_REALM = "edge-gateway"
_FORMAT_SECONDS = 5.0
_SEND_SECONDS = 10.0
_SESSION_TIMEOUT = 60


class Outlet(Protocol):
    """The way of one track's packets to its viewer."""

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets; may wait until a slow viewer takes them."""
        ...

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet, without waiting."""
        ...

    def close(self) -> None:
        """Close the outlet's own ports, if it has any."""
        ...


class Interleaved:
    """The outlet inside the RTSP connection (RFC 2326, 10.12)."""

    def __init__(self, *, writer: asyncio.StreamWriter, channel: int, control: int) -> None:
        self._writer = writer
        self._channel = channel
        self._control = control

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets, and wait until the connection takes them."""
        mark = bytes((0x24, self._channel))
        self._writer.write(b"".join(mark + len(packet).to_bytes(2, "big") + packet for packet in packets))
        await self._writer.drain()

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet on the control channel."""
        self._writer.write(bytes((0x24, self._control)) + len(packet).to_bytes(2, "big") + packet)

    def close(self) -> None:
        """Do nothing: the session closes the connection."""


class Datagrams:
    """The outlet over UDP, to the viewer's pair of ports."""

    def __init__(self, *, transport: asyncio.DatagramTransport, control: asyncio.DatagramTransport, port: int) -> None:
        self._transport = transport
        self._control = control
        self.port = port

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets, without waiting."""
        for packet in packets:
            self._transport.sendto(packet)

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet."""
        self._control.sendto(packet)

    def close(self) -> None:
        """Close both ports."""
        self._transport.close()
        self._control.close()


async def open_datagrams(local: str, remote: str, asked: AskedTransport) -> Datagrams:
    """Bind a free pair of neighbouring ports, the even one for packets (RFC 3550, 11).

    Raises ConnectionAbortedError when none is found.
    """
    loop = asyncio.get_running_loop()
    for _ in range(50):
        port = random.randrange(20_000, 60_000, 2)  # noqa: S311  # a port, no secret
        try:
            transport, _protocol = await loop.create_datagram_endpoint(
                asyncio.DatagramProtocol,
                local_addr=(local, port),
                remote_addr=(remote, asked.first),
            )
        except OSError:
            continue
        try:
            control, _protocol = await loop.create_datagram_endpoint(
                asyncio.DatagramProtocol,
                local_addr=(local, port + 1),
                remote_addr=(remote, asked.second),
            )
        except OSError:
            transport.close()
            continue
        return Datagrams(transport=transport, control=control, port=port)
    raise ConnectionAbortedError("no free pair of UDP ports")


class Track:
    """One track of a viewer: pictures, or the sound of this format. Belongs to the event loop."""

    def __init__(self, *, outlet: Outlet, sound: AudioFormat | None, packet_bytes: int) -> None:
        self._outlet = outlet
        self._sound = sound
        self._ssrc = secrets.randbits(32)
        first = {"ssrc": self._ssrc, "sequence": secrets.randbits(16), "timestamp": secrets.randbits(32)}
        self._pictures = Packetizer(**first, largest=packet_bytes)
        self._sounds = SoundPacketizer(**first, rate=8_000 if sound is None else sound.rate)
        self._packets = 0
        self._octets = 0
        self._reported: int | None = None

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next packet."""
        return self._pictures.next_sequence if self._sound is None else self._sounds.next_sequence

    async def send(self, item: EncodedFrame | EncodedAudio, *, lost: bool = False) -> None:
        """Send a frame or a piece of sound. Sound of another format than the track's is dropped.

        `lost` leaves out its second packet, as if the network had lost it.
        """
        if isinstance(item, EncodedFrame):
            packets, timestamp = self._pictures.packets(item), self._pictures.timestamp(item.pts)
        elif item.format == self._sound:
            packets, timestamp = self._sounds.packets(item), self._sounds.timestamp(item.pts)
        else:
            return
        if self._reported is None or abs(item.pts - self._reported) >= _REPORT_TICKS:
            self._reported = item.pts
            self._outlet.report(
                sender_report(
                    ssrc=self._ssrc,
                    timestamp=timestamp,
                    seconds=_BEGIN_SECONDS + item.pts / TICKS_PER_SECOND,
                    packets=self._packets,
                    octets=self._octets,
                )
            )
        await self._outlet.send([*packets[:1], *packets[2:]] if lost else packets)
        self._packets += len(packets)
        self._octets += sum(map(len, packets)) - 12 * len(packets)

    def close(self) -> None:
        """Close the outlet."""
        self._outlet.close()


class Frames(Protocol):
    """The frames of one viewer."""

    def frames(self) -> AsyncIterator[EncodedFrame | EncodedAudio]:
        """Iterate over frames in order, and the sound between them, until the stream ends."""
        ...


class Feed(Protocol):
    """The source of a stream's frames, for example a `Fanout`."""

    @property
    def viewers(self) -> int:
        """The number of subscriptions."""
        ...

    @property
    def sound(self) -> AudioFormat | None:
        """The format of the sound that comes with the frames, None for none."""
        ...

    async def format(self) -> VideoFormat:
        """Wait until the format is known, and return it."""
        ...

    def subscribe(self) -> AbstractContextManager[Frames]:
        """Add a viewer for the length of the block."""
        ...


class Stream(Protocol):
    """A stream as a session uses it; see `ServedStream`, also for the attributes."""

    @property
    def feed(self) -> Feed:
        """The source of the stream's frames."""
        ...

    credentials: Credentials | None
    refuse_with: int | None
    stalled: bool
    loses_keyframes: bool
    packet_bytes: int

    def joined(self, session: RtspSession) -> None:
        """Note that a session has set up this stream."""
        ...

    def left(self, session: RtspSession) -> None:
        """Note that a session has ended."""
        ...


class RtspSession:
    """The session of one connection. It lasts until the viewer ends it, falls silent, or does not take its packets."""

    def __init__(
        self,
        *,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        streams: Mapping[str, Stream],
        host: str,
        idle_seconds: float,
        place: Place,
        places: Places,
        guesses: Throttle,
    ) -> None:
        """See RtspServer for `idle_seconds`. `guesses` counts wrong passwords by the address of the place."""
        self._reader = reader
        self._writer = writer
        self._streams = streams
        self._identity = secrets.token_hex(8)
        self._host = host
        self._idle_seconds = idle_seconds
        self._place = place
        self._places = places
        self._guesses = guesses
        self._nonce = secrets.token_hex(16)
        self._stream: Stream | None = None
        self._path = ""
        self._tracks: dict[bool, Track] = {}
        self._sending: asyncio.Task[None] | None = None
        self._keyframes = 0
        self._ended = False

    def abort(self) -> None:
        """Break the connection at once."""
        self._writer.transport.abort()

    async def run(self) -> None:
        """Serve the viewer until it ends the session with TEARDOWN.

        Raises:
            ConnectionAbortedError: the viewer is gone, silent or too slow, or broke the protocol.
        """
        try:
            async with asyncio.TaskGroup() as group:
                while not self._ended:
                    await asyncio.sleep(0)  # requests that came together must not keep others from their turn
                    request = await self._request()
                    self._move(Stage.ANSWER)
                    answer = await self._answer(request)
                    headers = {**answer.headers, **({"Session": self._session()} if self._tracks else {})}
                    await self._write(
                        RtspAnswer(answer.status, headers, answer.body).to_bytes(request.headers.get("cseq", "0"))
                    )
                    if request.method == "PLAY" and answer.status == 200 and self._sending is None:
                        self._sending = group.create_task(self._send())
                    self._move(Stage.IDLE if self._sending is None else Stage.ANSWER)
                if self._sending is not None:
                    self._sending.cancel()
        except* (ConnectionError, TimeoutError, asyncio.IncompleteReadError, ProtocolViolation) as errors:
            first = errors.exceptions[0]
            raise ConnectionAbortedError(f"{type(first).__name__}: {first}") from errors
        finally:
            for track in self._tracks.values():
                track.close()
            if self._stream is not None:
                self._stream.left(self)

    def _move(self, stage: Stage) -> None:
        self._place.move(stage, now=self._places.now())

    def _session(self) -> str:
        return f"{self._identity};timeout={_SESSION_TIMEOUT}"

    async def _request(self) -> RtspRequest:
        """Read the next request; interleaved packets before it, the viewer's reports, only show that it is there."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._idle_seconds) as limit:
            while (first := await self._reader.readexactly(1)) in (b"$", b"\r", b"\n"):
                if first == b"$":
                    header = await self._reader.readexactly(3)
                    await self._reader.readexactly(int.from_bytes(header[1:], "big"))
                    limit.reschedule(loop.time() + self._idle_seconds)
        async with asyncio.timeout(HEAD_SECONDS):
            try:
                head = first + await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError as error:
                raise ProtocolViolation("a request without end") from error
            request = parse_request(head[:-4])
            length = number(request.headers.get("content-length", "0"))
            if length is None or length > LONGEST_HEAD:
                raise ProtocolViolation("a request body of no sensible size")
            await self._reader.readexactly(length)
            return request

    async def _answer(self, request: RtspRequest) -> RtspAnswer:
        answer = RtspAnswer(200)
        match request.method:
            case "OPTIONS":
                answer = RtspAnswer(200, {"Public": ", ".join(METHODS)})
            case "DESCRIBE":
                answer = await self._describe(request)
            case "SETUP":
                answer = await self._setup(request)
            case "PLAY":
                answer = self._play(request)
            case "TEARDOWN":
                self._ended = True
            case "GET_PARAMETER":
                pass
            case _:
                answer = RtspAnswer(501)
        return answer

    def _find(self, request: RtspRequest) -> Stream | RtspAnswer:
        stream = self._streams.get(request.path)
        if stream is None:
            return RtspAnswer(404)
        if stream.refuse_with is not None:
            return RtspAnswer(stream.refuse_with)
        refusal = None if stream.credentials is None else self._refusal(request, stream.credentials)
        return stream if refusal is None else refusal

    def _refusal(self, request: RtspRequest, credentials: Credentials) -> RtspAnswer | None:
        """Return the refusal of a request without the right account; after wrong ones the address has to wait."""
        now = asyncio.get_running_loop().time()
        proof = proof_of(request, credentials, realm=_REALM, nonce=self._nonce)
        wait = 0.0 if proof is Proof.NONE else self._guesses.wait(self._place.host, now=now)
        if wait > 0:
            self._ended = True
            return RtspAnswer(503, {"Retry-After": str(math.ceil(wait))})
        if proof is Proof.RIGHT:
            self._guesses.succeeded(self._place.host)
            self._places.know(self._place.host)
            return None
        if proof is Proof.WRONG:
            self._guesses.failed(self._place.host, now=now)
        return RtspAnswer(401, {"WWW-Authenticate": f'Digest realm="{_REALM}", nonce="{self._nonce}"'})

    async def _describe(self, request: RtspRequest) -> RtspAnswer:
        found = self._find(request)
        if isinstance(found, RtspAnswer):
            return found
        try:
            async with asyncio.timeout(_FORMAT_SECONDS):
                described = await found.feed.format()
        except TimeoutError:
            return RtspAnswer(503, {"Retry-After": "5"})
        base = request.url.rstrip("/") + "/"
        headers = {"Content-Type": "application/sdp", "Content-Base": base}
        sound = found.feed.sound if may_be_served(found.feed.sound) else None
        return RtspAnswer(200, headers, session_description(described, host=self._host, sound=sound))

    async def _setup(self, request: RtspRequest) -> RtspAnswer:
        found = self._find(request)
        if isinstance(found, RtspAnswer):
            return found
        sound = found.feed.sound if request.is_sound else None
        if request.is_sound and (sound is None or not may_be_served(sound)):
            return RtspAnswer(404)
        if request.is_sound in self._tracks or self._path not in ("", request.path) or self._sending is not None:
            return RtspAnswer(455)
        asked = parse_transport(request.headers.get("transport", ""))
        if asked is None:
            return RtspAnswer(461)
        if self._stream is None:
            self._stream, self._path = found, request.path
            found.joined(self)
        outlet: Outlet
        if asked.interleaved:
            outlet = Interleaved(writer=self._writer, channel=asked.first, control=asked.second)
            answer = f"RTP/AVP/TCP;unicast;interleaved={asked.first}-{asked.second}"
        else:
            local, remote = (self._writer.get_extra_info(end)[0] for end in ("sockname", "peername"))
            outlet = datagrams = await open_datagrams(local, remote, asked)
            ports = f"client_port={asked.first}-{asked.second};server_port={datagrams.port}-{datagrams.port + 1}"
            answer = f"RTP/AVP;unicast;{ports}"
        self._tracks[request.is_sound] = Track(outlet=outlet, sound=sound, packet_bytes=found.packet_bytes)
        return RtspAnswer(200, {"Transport": answer})

    def _play(self, request: RtspRequest) -> RtspAnswer:
        if not self._tracks:
            return RtspAnswer(454)
        base = request.url.rstrip("/")
        info = ",".join(
            f"url={base}/{SOUND_TRACK if is_sound else TRACK};seq={track.next_sequence}"
            for is_sound, track in self._tracks.items()
        )
        return RtspAnswer(200, {"Range": "npt=now-", "RTP-Info": info})

    async def _send(self) -> None:
        if self._stream is None:
            return
        with self._stream.feed.subscribe() as subscription:
            await self._send_all(self._stream, subscription)
        self.abort()

    async def _send_all(self, stream: Stream, subscription: Frames) -> None:
        async for item in subscription.frames():
            track = self._tracks.get(isinstance(item, EncodedAudio))
            if track is not None and not stream.stalled:
                is_keyframe = isinstance(item, EncodedFrame) and item.keyframe
                self._keyframes += is_keyframe
                lost = stream.loses_keyframes and is_keyframe and self._keyframes % 2 == 0
                async with asyncio.timeout(_SEND_SECONDS):
                    await track.send(item, lost=lost)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(_SEND_SECONDS):
            await self._writer.drain()
