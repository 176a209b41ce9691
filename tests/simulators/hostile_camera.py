"""A camera as the field has them: a real RTSP server on loopback that misbehaves by a script.

It shares RTP's packets with the product, and nothing of how the product reads them; its account checks are its own.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import math
import random
import re
import secrets
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import av

from drivers.rtsp import formats
from drivers.rtsp.frames import EncodedFrame, VideoCodec
from drivers.rtsp.packetizer import Packetizer
from drivers.rtsp.server.messages import RtspRequest, parse_request, parse_transport, session_description

RATE = 25
TICKS = 90_000 // RATE
PICTURES_BEGIN = 0xFFFFFFFF - 45_000
"""RTP time of the pictures' time 0: it wraps soon."""
SOUND_BEGINS = 777_000
OTHER_PAYLOAD_TYPE = 98
"""What a film's second codec goes by."""


@functools.cache
def film(
    codec: str = "h264",
    *,
    frames: int = 50,
    gop: int = 10,
    b_frames: int = 0,
    width: int = 160,
    height: int = 96,
    options: str = "",
) -> tuple[EncodedFrame, ...]:
    """Encoded pictures of noise that moves, in decoding order; made once. `options`: more of them for x264 or x265."""
    encoder = av.CodecContext.create("libx264" if codec == "h264" else "libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, RATE), Fraction(RATE)
    encoder.gop_size, encoder.max_b_frames, encoder.thread_count = gop, b_frames, 1
    closed = f"keyint={gop}:min-keyint={gop}:scenecut=0:repeat-headers=1"
    name = "x264-params" if codec == "h264" else "x265-params"
    extra = "" if codec == "h264" else f":open-gop=0:log-level=none:pools=none:frame-threads=1:bframes={b_frames}"
    encoder.options = {"preset": "ultrafast", name: closed + extra + (options and f":{options}")}
    noise = random.Random(1)
    canvas = bytearray(noise.randbytes(width * height))
    packets = []
    for number in range(frames):
        canvas = canvas[width:] + canvas[:width]
        picture = av.VideoFrame(width, height, "yuv420p")
        for plane, data in zip(
            picture.planes, (canvas, bytes(width * height // 4), bytes(width * height // 4)), strict=True
        ):
            rows = len(data) // plane.height
            padding = bytes(plane.line_size - rows)
            plane.update(b"".join(bytes(data[at : at + rows]) + padding for at in range(0, len(data), rows)))
        picture.pts, picture.time_base = number, Fraction(1, RATE)
        packets += encoder.encode(picture)
    packets += encoder.encode(None)
    return tuple(
        EncodedFrame(bytes(p), p.pts * TICKS, p.dts * TICKS, p.is_keyframe, 0.0, VideoCodec(codec)) for p in packets
    )


def on_time(frame: EncodedFrame) -> EncodedFrame:
    """Return the frame as it arrives when nothing holds it up; the uptime begins with the film."""
    return replace(frame, arrived=frame.pts / 90_000)


@functools.cache
def sound(codec: str, *, seconds: float = 4.0, rate: int = 44_100, channels: int = 2) -> Sound:
    """A tone that starts anew each second, encoded; made once. G.711 is 8000 samples a second, in 20 ms packets."""
    name = {"aac": "aac", "pcmu": "pcm_mulaw", "pcma": "pcm_alaw"}[codec]
    rate, channels = (rate, channels) if codec == "aac" else (8_000, 1)
    encoder = av.CodecContext.create(name, "w")
    encoder.sample_rate, encoder.layout = rate, "stereo" if channels == 2 else "mono"
    encoder.format, encoder.time_base = "fltp" if codec == "aac" else "s16", Fraction(1, rate)
    encoder.open()
    size = 1024 if codec == "aac" else 160
    units, at = [], 0
    while at < seconds * rate:
        tone = math.tau * (440.137 + 61.713 * (at // rate)) / rate  # no two units are the same
        samples = [math.sin(tone * (at + n)) * ((at + n) % rate < rate // 2) / 2 for n in range(size)]
        frame = av.AudioFrame(encoder.format.name, encoder.layout.name, size)
        frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
        for plane in frame.planes:
            plane.update(
                struct.pack(f"={size}f", *samples)
                if codec == "aac"
                else struct.pack(f"={size}h", *(int(one * 32_767) for one in samples))
            )
        units += [bytes(packet) for packet in encoder.encode(frame)]
        at += size
    return Sound(codec, rate, size, (encoder.extradata or b"").hex(), tuple(units))


@dataclass(frozen=True)
class Sound:
    """The sound of a microphone: each unit holds `size` samples."""

    codec: str
    rate: int
    size: int
    config: str
    units: tuple[bytes, ...]

    def description(self) -> bytes:
        if self.codec != "aac":
            number = {"pcmu": 0, "pcma": 8}[self.codec]
            return f"m=audio 0 RTP/AVP {number}\r\na=control:trackID=1\r\n".encode()
        parameters = (
            f"streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;"
            f"config={self.config}"
        )
        return (
            f"m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/{self.rate}/2\r\na=fmtp:97 {parameters}\r\n"
            "a=control:trackID=1\r\n"
        ).encode()

    def packets(self, number: int, *, sequence: int, timestamp: int, largest: int = 1_000) -> list[bytes]:
        """The packets of one unit; one that is too large goes in fragments."""
        unit = self.units[number % len(self.units)]
        kind = {"aac": 97, "pcmu": 0, "pcma": 8}[self.codec]
        parts = [unit[at : at + largest] for at in range(0, len(unit), largest)]
        head = b"\x00\x10" + (len(unit) << 3).to_bytes(2, "big") if self.codec == "aac" else b""
        return [
            struct.pack(
                "!BBHII", 0x80, kind | 0x80 * (part is parts[-1]), sequence + at & 0xFFFF, timestamp & 0xFFFFFFFF, 9
            )
            + head
            + part
            for at, part in enumerate(parts)
        ]


def joined(*films: tuple[EncodedFrame, ...]) -> tuple[EncodedFrame, ...]:
    """One film after the other, as one."""
    whole: list[EncodedFrame] = []
    for each in films:
        shift = len(whole) * TICKS
        whole += [replace(frame, pts=frame.pts + shift, dts=frame.dts + shift) for frame in each]
    return tuple(whole)


@dataclass
class Script:
    """The script of this camera. Its defaults are those of a good camera."""

    film: tuple[EncodedFrame, ...] = ()
    pace: float = 1.0
    """How much faster than real time."""
    account: tuple[str, str] | None = None
    scheme: str = "digest-md5"
    """`basic`, `digest-md5`, `digest-sha256`, `digest-old` (without qop)."""
    nonce_serves: int = 1_000
    """Requests after which a nonce is stale."""
    hangs_up: bool = False
    """It closes the connection that a request without a good account came on."""
    silent: bool = False
    describe_seconds: float = 0.0
    redirect: Callable[[], str] | None = None
    hears_after: float = 0.0
    """Seconds that it is busy with sending before it reads what comes while it plays."""
    refuses_udp: bool = False
    most_sessions: int = 99
    session_seconds: float = 60.0
    """Silence after which a session is over; one whose connection just vanished stays that long."""
    kept_alive_by: str = ""
    """The only method that counts as a sign of life; the others are refused."""
    sets_in: str = "both"
    """`both`, `sdp`, `band`: where parameter sets are."""
    timestamp: Callable[[int, int], int] = lambda _index, pts: pts
    """The RTP time of the picture with this number and true time."""
    packets: Callable[[int, list[bytes]], list[bytes]] = lambda _index, packets: packets
    """What becomes of a picture's packets."""
    ends_after: int = 0
    """Pictures of a connection after which `ends_by` happens; 0: never."""
    ends_by: str = "close"
    """`close`, `mid_frame`, `stall`, `bye`, `reset`."""
    between: bytes = b""
    """Sent inside the RTSP connection before each picture."""
    sound: Sound | None = None
    sound_status: int = 200
    """What SETUP of the sound is answered with."""
    sound_late: float = 0.0
    """Seconds that sound is sent after the pictures it belongs to."""
    sound_jumps: int = 0
    """RTP's count of the sound jumps by so much after a second."""
    largest_sound: int = 1_000
    names_sender: Callable[[int], str] = lambda port: f";server_port={port}-{port + 1};ssrc=00000007"
    """How the answer to SETUP of the pictures names the UDP port and the SSRC that they come from."""
    other_channel: str = ""
    """Another channel of the same recorder sends to the same port: from another `port`, or with another `ssrc`."""
    reports: bool = False
    """Whether sender reports tell how sound and pictures belong together."""
    names_start: bool = False
    """Whether the answer to PLAY tells the RTP time at which each stream begins (RFC 2326, 12.33)."""
    answers: Callable[[RtspRequest], tuple[int, dict[str, str], bytes] | str | None] = lambda _request: None
    """Its own answer to a request: status, headers and body; `close` to hang up, `none` for silence; None: as usual."""
    sequence: Callable[[str], str] = lambda number: number
    """The CSeq of the answer to the request with this number."""
    line_end: str = "\r\n"
    names_length: bool = True
    """False to leave Content-Length out of answers."""
    answer_to_play: bool = True
    """False to leave PLAY unanswered; the pictures come in any case."""
    grants: str | None = None
    """The Transport header of the answer to SETUP; None for a true one."""
    names_session: str = "{session};timeout={seconds}"
    """The Session header of the answer to SETUP."""
    asks: bytes = b""
    """A request of its own, sent after each tenth picture."""
    sound_clock: float = 0.0
    """Seconds by which the clock of the sound's reports is ahead of that of the pictures'."""


@dataclass
class HostileCamera:
    """`async with` it; change `script` at will, it counts from the next connection or picture on."""

    script: Script
    port: int = 0
    tls: ssl.SSLContext | None = None
    connections: int = 0
    addresses: list[str] = field(default_factory=list)
    """The URL of each request."""
    heard: list[bytes] = field(default_factory=list)
    """The answers to its own requests."""
    requests: list[str] = field(default_factory=list)
    sessions: dict[str, float] = field(default_factory=dict)
    _nonces: dict[str, int] = field(default_factory=dict)
    _tasks: set[asyncio.Task] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.wait_for(asyncio.gather(*self._tasks), 5)
        await asyncio.sleep(0)

    def url(self, account: str = "") -> str:
        return f"rtsp{'s' if self.tls else ''}://{account}127.0.0.1:{self.port}/cam"

    def drop(self) -> None:
        """The power goes: every connection vanishes."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connected(self, reader, writer):
        self.connections += 1
        task = asyncio.current_task()
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await _Visit(self, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    def admits(self, request) -> str | None:
        """None, or the challenge that answers this request."""
        if self.script.account is None:
            return None
        user, password = self.script.account
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        stale = False
        if self.script.scheme == "basic":
            if scheme == "Basic" and base64.b64decode(rest).decode() == f"{user}:{password}":
                return None
            return 'Basic realm="cam"'
        algorithm = "SHA-256" if self.script.scheme == "digest-sha256" else "MD5"
        if scheme == "Digest":
            given = {k: a or b for k, a, b in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', rest)}
            nonce = given.get("nonce", "")

            def digest(text):
                return hashlib.new(algorithm.replace("-", ""), text.encode(), usedforsecurity=False).hexdigest()

            one, two = digest(f"{user}:cam:{password}"), digest(f"{request.method}:{given.get('uri')}")
            qop = f"{given['nc']}:{given['cnonce']}:auth:" if "qop" in given else ""
            if given.get("response") == digest(f"{one}:{nonce}:{qop}{two}") and given.get("username") == user:
                if self._nonces.get(nonce, 0) > 0:
                    self._nonces[nonce] -= 1
                    return None
                stale = True
        nonce = secrets.token_hex(8)
        self._nonces[nonce] = self.script.nonce_serves
        qop = "" if self.script.scheme == "digest-old" else ', qop="auth", opaque="x,y"'
        tail = f", algorithm={algorithm}" if algorithm != "MD5" else ""
        return f'Digest realm="cam", nonce="{nonce}"{qop}{tail}{", stale=true" if stale else ""}'


class _Visit:
    """One connection."""

    def __init__(self, camera: HostileCamera, reader, writer) -> None:
        self.camera, self.reader, self.writer = camera, reader, writer
        self.transport = None
        self.datagrams = None
        self.sound_datagrams = None
        self.other_datagrams = None
        self.sounds = False
        self.session = ""
        self.sending = None

    async def run(self):
        if self.camera.script.silent:
            await self.reader.read()
            return
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    try:
                        request = await self._request()
                    finally:
                        if self.sending is not None and self.reader.at_eof():
                            self.sending.cancel()
                    self.camera.requests.append(request.method)
                    self.camera.addresses.append(request.url)
                    script = self.camera.script
                    own = script.answers(request)
                    if own == "close":
                        raise ConnectionResetError
                    if own == "none":
                        continue
                    status, headers, body = own or await self._answer(request)
                    lines = [f"RTSP/1.0 {status} X", f"CSeq: {script.sequence(request.headers['cseq'])}"]
                    lines += [f"{k}: {v}" for k, v in headers.items()]
                    if body and script.names_length:
                        lines.append(f"Content-Length: {len(body)}")
                    if request.method != "PLAY" or script.answer_to_play:
                        self.writer.write(script.line_end.join([*lines, "", ""]).encode() + body)
                    await self.writer.drain()
                    if status == 401 and self.camera.script.hangs_up:
                        raise ConnectionResetError
                    if request.method == "PLAY" and status == 200:
                        self.sending = group.create_task(self._play())
                    if request.method == "TEARDOWN":
                        self.camera.sessions.pop(self.session, None)
                        raise ConnectionResetError
        except* (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            for datagrams in (self.datagrams, self.sound_datagrams, self.other_datagrams):
                if datagrams is not None:
                    datagrams.close()

    async def _request(self):
        if self.sending is not None:
            await asyncio.sleep(self.camera.script.hears_after)  # what the script asks for
        while True:
            first = await self.reader.readexactly(1)
            if first == b"$":
                head = await self.reader.readexactly(3)
                await self.reader.readexactly(int.from_bytes(head[1:], "big"))
                continue
            message = first + await self.reader.readuntil(b"\r\n\r\n")
            if not message.startswith(b"RTSP/"):
                return parse_request(message[:-4])
            self.camera.heard.append(message)

    async def _answer(self, request):
        script, now = self.camera.script, asyncio.get_running_loop().time()
        if request.method == "OPTIONS" and not self.session:
            return 200, {"Public": "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER"}, b""
        if challenge := self.camera.admits(request):
            return 401, {"WWW-Authenticate": challenge}, b""
        if request.method == "DESCRIBE":
            await asyncio.sleep(script.describe_seconds)  # what the script asks for
            if script.redirect is not None:
                return 302, {"Location": script.redirect()}, b""
            told = formats.told_by(script.film[0])
            body = session_description(told, host="127.0.0.1")
            for codec in {frame.codec for frame in script.film} - {script.film[0].codec}:
                other = str(OTHER_PAYLOAD_TYPE).encode()
                name = codec.value.upper().encode()
                body = body.replace(b"RTP/AVP 96", b"RTP/AVP 96 " + other)
                body = body.replace(
                    b"a=control:trackID=0", b"a=rtpmap:%b %b/90000\r\na=control:trackID=0" % (other, name)
                )
            if script.sets_in == "band":
                body = re.sub(rb"a=fmtp[^\r]*\r\n", b"", body)
            if script.sound is not None:
                body += script.sound.description()
            return 200, {"Content-Base": request.url + "/", "Content-Type": "application/sdp"}, body
        if request.method == "SETUP" and request.url.endswith("trackID=1"):
            return await self._set_up_sound(parse_transport(request.headers["transport"]))
        if request.method == "SETUP":
            asked = parse_transport(request.headers["transport"])
            if script.refuses_udp and not asked.interleaved:
                return 461, {}, b""
            alive = {name for name, until in self.camera.sessions.items() if until > now}
            if len(alive) >= script.most_sessions:
                return 453, {}, b""
            self.session = secrets.token_hex(4)
            self.camera.sessions[self.session] = now + script.session_seconds
            self.transport = asked
            if asked.interleaved:
                transport = f"RTP/AVP/TCP;unicast;interleaved={asked.first}-{asked.second}"
            else:
                self.datagrams, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                    asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0), remote_addr=("127.0.0.1", asked.first)
                )
                self.other_datagrams, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                    asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0), remote_addr=("127.0.0.1", asked.first)
                )
                named = script.names_sender(self.datagrams.get_extra_info("sockname")[1])
                transport = f"RTP/AVP;unicast;client_port={asked.first}-{asked.second}{named}"
            timeout = max(1, int(script.session_seconds))
            session = script.names_session.format(session=self.session, seconds=timeout)
            return 200, {"Transport": transport if script.grants is None else script.grants, "Session": session}, b""
        refused = {"GET_PARAMETER", "OPTIONS"} - {script.kept_alive_by} if script.kept_alive_by else set()
        if self.session and request.method in refused:
            return 501, {}, b""
        if self.session:
            self.camera.sessions[self.session] = now + script.session_seconds
        headers = {"Session": self.session} if self.session else {}
        if request.method == "PLAY" and script.names_start:
            begins = enumerate((PICTURES_BEGIN + script.film[0].pts, SOUND_BEGINS))
            told = (f"url={request.url}/trackID={number};rtptime={time & 0xFFFFFFFF}" for number, time in begins)
            headers["RTP-Info"] = ",".join(told)
        return 200, headers, b""

    async def _set_up_sound(self, asked):
        if self.camera.script.sound_status != 200:
            return self.camera.script.sound_status, {}, b""
        if asked.interleaved:
            transport = f"RTP/AVP/TCP;unicast;interleaved={asked.first}-{asked.second}"
        else:
            self.sound_datagrams, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0), remote_addr=("127.0.0.1", asked.first)
            )
            transport = f"RTP/AVP;unicast;client_port={asked.first}-{asked.second}"
        self.sounds = True
        return 200, {"Transport": transport, "Session": self.session}, b""

    def _send(self, packet, *, channel=0):
        datagrams = self.datagrams if channel in (0, 1) else self.sound_datagrams
        if datagrams is None:
            self.writer.write(bytes((0x24, channel)) + len(packet).to_bytes(2, "big") + packet)
        elif not channel & 1:
            if self.camera.script.other_channel:
                ssrc = b"\x00\x00\x00\x08" if self.camera.script.other_channel == "ssrc" else packet[8:12]
                from_port = self.other_datagrams if self.camera.script.other_channel == "port" else datagrams
                from_port.sendto(packet[:8] + ssrc + bytes(len(packet) - 12))
            datagrams.sendto(packet)

    async def _play_sound(self, begun):
        """The sound; its own count of time begins anywhere."""
        script, loop = self.camera.script, asyncio.get_running_loop()
        told, sequence, at = script.sound, 10, 0
        while True:
            seconds = at * told.size / told.rate
            due = begun + seconds / script.pace + script.sound_late
            await asyncio.sleep(max(0.0, due - loop.time()))  # the pace of the camera
            jump = script.sound_jumps if seconds > 1 else 0
            packets = told.packets(
                at, sequence=sequence, timestamp=SOUND_BEGINS + at * told.size + jump, largest=script.largest_sound
            )
            if script.reports and at % 20 == 0:
                self._report(3, seconds + script.sound_clock, SOUND_BEGINS + at * told.size + jump)
            sequence += len(packets)
            for packet in packets:
                self._send(packet, channel=2)
            await self.writer.drain()
            at += 1

    def _report(self, channel, seconds, timestamp):
        """Return the report of the camera's clock, an hour after some epoch, for an RTP time."""
        clock = int((3_600 + seconds) * 2**32)
        self._send(struct.pack("!BBHIQIII", 0x80, 200, 6, 7, clock, timestamp & 0xFFFFFFFF, 0, 0), channel=channel)

    async def _play(self):
        begun = asyncio.get_running_loop().time()
        if not self.sounds:
            await self._play_pictures(begun)
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._play_pictures(begun))
            group.create_task(self._play_sound(begun))

    async def _play_pictures(self, begun):
        script = self.camera.script
        packetizer = Packetizer(ssrc=7, sequence=65_500, timestamp=PICTURES_BEGIN)
        loop = asyncio.get_running_loop()
        index, shift = 0, 0
        while True:
            for frame in script.film:
                if script.kept_alive_by and loop.time() > self.camera.sessions.get(self.session, 0.0):
                    raise ConnectionResetError
                due = begun + index / RATE / script.pace
                await asyncio.sleep(max(0.0, due - loop.time()))  # the pace of the camera
                told = replace(frame, pts=script.timestamp(index, frame.pts + shift))
                if script.sets_in == "sdp":
                    told = replace(told, data=_bare(told))
                if script.reports and index % 20 == 0:
                    self._report(1, told.pts / 90_000, packetizer.timestamp(told.pts))
                packets = packetizer.packets(told)
                if told.codec is not script.film[0].codec:
                    packets = [
                        packet[:1] + bytes((packet[1] & 0x80 | OTHER_PAYLOAD_TYPE,)) + packet[2:] for packet in packets
                    ]
                packets = script.packets(index, packets)
                index += 1
                if script.between and self.datagrams is None:
                    self.writer.write(script.between)
                if script.ends_after and index > script.ends_after:
                    await self._end(packets)
                for packet in packets:
                    self._send(packet)
                if script.asks and index % 10 == 0:
                    self.writer.write(script.asks)
                await self.writer.drain()
                script = self.camera.script
            shift += len(script.film) * TICKS

    async def _end(self, packets):
        match self.camera.script.ends_by:
            case "stall":
                await asyncio.Event().wait()
            case "mid_frame":
                self.writer.write(b"$\x00" + len(packets[0]).to_bytes(2, "big") + packets[0][: len(packets[0]) // 2])
                await self.writer.drain()
                self.writer.close()
            case "bye":
                self.writer.write(b"$\x01\x00\x08" + b"\x81\xcb\x00\x01\x00\x00\x00\x07")
                await self.writer.drain()
                await asyncio.Event().wait()
            case "reset":
                self.writer.transport.abort()
            case _:
                self.writer.close()
        raise ConnectionResetError


def _bare(frame: EncodedFrame) -> bytes:
    """Without parameter sets."""
    from drivers.rtsp import h264, h265

    if frame.codec is VideoCodec.H265:
        units = [u for u in h264.nal_units(frame.data) if h265.nal_type(u) not in (h265.VPS, h265.SPS, h265.PPS)]
    else:
        units = [u for u in h264.nal_units(frame.data) if h264.nal_type(u) not in (h264.SPS, h264.PPS)]
    return b"".join(h264.START_CODE + unit for unit in units)
