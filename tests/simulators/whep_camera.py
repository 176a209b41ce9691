"""A WebRTC camera on this machine: a WHEP server with aiortc's own sender behind it, which misbehaves by a script."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import av
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.rtp import is_rtcp
from hostile_camera import RATE, TICKS
from webrtc_peers import vanish

from drivers.rtsp.depacketizer import payload_offset
from drivers.rtsp.frames import EncodedFrame, VideoCodec
from drivers.rtsp.packetizer import Packetizer


@dataclass
class WhepScript:
    """The script of this camera. Its defaults are those of a good camera."""

    film: tuple[EncodedFrame, ...] = ()
    pace: float = 1.0
    statuses: list[int] = field(default_factory=list)
    """What the next POSTs are answered with before one is served."""
    answer_seconds: float = 0.0
    basic: tuple[str, str] | None = None
    digest: tuple[str, str] | None = None
    token: str = ""
    redirect: str = ""
    answer: Callable[[str], str] = lambda sdp: sdp
    """What becomes of the answer."""
    loses: Callable[[int, int, bool], bool] = lambda _picture, _times, _last: False
    """Whether a packet of this picture, its last one or not, is lost on the way, when it is sent for the n-th time."""
    heeds_pli: bool = True
    deaf: bool = False
    """Nothing at the addresses that it answers with."""
    ends_after: int = 0
    """Pictures of a session after which `ends_by` happens; 0: never."""
    ends_by: str = "session"
    """`session` (it is closed), `network` (its sockets vanish), `stall`."""


class _H265:
    """H.265 into RTP, which aiortc lacks, in the place of its encoder."""

    def pack(self, packet):
        frame = EncodedFrame(bytes(packet), packet.pts, packet.pts, False, 0.0, VideoCodec.H265)
        packetizer = Packetizer(ssrc=0, sequence=0, timestamp=0, largest=1_200)
        return [each[12:] for each in packetizer.packets(frame)], packet.pts


class _Film(MediaStreamTrack):
    kind = "video"

    def __init__(self, visit: _Visit) -> None:
        super().__init__()
        self._visit = visit
        self._begun = 0.0
        self.at = 0
        self.sent = 0

    def next_keyframe(self) -> None:
        """Make the next picture a keyframe, as an encoder does when one is asked for."""
        film = self._visit.script.film
        while not film[self.at % len(film)].keyframe:
            self.at += 1

    async def recv(self):
        script, loop = self._visit.script, asyncio.get_running_loop()
        self._begun = self._begun or loop.time()
        due = self._begun + self.sent / RATE / script.pace
        await asyncio.sleep(max(0.0, due - loop.time()))  # the pace of the camera
        if script.ends_after and self.sent >= script.ends_after:
            await self._visit.end()
        frame = script.film[self.at % len(script.film)]
        packet = av.Packet(frame.data)
        packet.pts, packet.time_base = self.sent * TICKS, Fraction(1, 90_000)
        self.at += 1
        self.sent += 1
        return packet


class _Visit:
    """One session."""

    def __init__(self, script: WhepScript) -> None:
        self.script = script
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.track = _Film(self)
        self.plis = 0
        self.naks = 0
        self.lost = 0
        self._picture_of: dict[int, int] = {}
        self._closing: asyncio.Task | None = None

    async def answer(self, offer: str) -> str:
        sender = self.peer.addTrack(self.track)
        await self.peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        transport = sender.transport
        really_send, really_resend = transport._send_rtp, sender._retransmit

        async def send(data: bytes) -> None:
            if not is_rtcp(data):
                at = payload_offset(data)
                resent = data[1] & 0x7F == sender._RTCRtpSender__rtx_payload_type
                number = int.from_bytes(data[at : at + 2] if resent else data[2:4], "big")
                picture = self._picture_of.setdefault(number, self.track.sent)
                if self.script.loses(picture, 2 if resent else 1, bool(data[1] & 0x80)):
                    self.lost += 1
                    return
            await really_send(data)

        async def resend(number: int) -> None:
            self.naks += 1
            await really_resend(number)

        def asked_for_keyframe() -> None:
            self.plis += 1
            if self.script.heeds_pli:
                self.track.next_keyframe()

        transport._send_rtp, sender._retransmit = send, resend
        sender._send_keyframe = asked_for_keyframe
        if self.script.deaf:
            vanish(self.peer)
        sdp = self.peer.localDescription.sdp
        if self.script.film[0].codec is VideoCodec.H265:
            sender._RTCRtpSender__encoder = _H265()
            sdp = sdp.replace("H264/90000", "H265/90000")
        return sdp

    async def end(self) -> None:
        """The end that the script asks for; it does not return."""
        if self.script.ends_by == "session":
            self._closing = asyncio.get_running_loop().create_task(self.peer.close())
        elif self.script.ends_by == "network":
            vanish(self.peer)
        await asyncio.Event().wait()


@dataclass
class WhepCamera:
    """`async with` it; change `script` at will, it counts from the next session on."""

    script: WhepScript
    port: int = 0
    tls: ssl.SSLContext | None = None
    offers: int = 0
    deleted: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    visits: dict[str, _Visit] = field(default_factory=dict)
    _runner: web.AppRunner | None = None

    async def __aenter__(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()
        for visit in self.visits.values():
            await visit.peer.close()

    def url(self, account: str = "") -> str:
        return f"whep{'s' if self.tls else ''}://{account}127.0.0.1:{self.port}/cam/whep"

    @property
    def last(self) -> _Visit:
        return list(self.visits.values())[-1]

    def _challenge(self, request) -> str | None:
        script = self.script
        scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
        if script.token and (scheme, rest) != ("Bearer", script.token):
            return "Bearer"
        if script.basic:
            user, password = script.basic
            wanted = base64.b64encode(f"{user}:{password}".encode()).decode()
            return None if (scheme, rest) == ("Basic", wanted) else 'Basic realm="cam"'
        if script.digest:
            user, password = script.digest
            given = {k: a or b for k, a, b in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', rest)}

            def md5(text):
                return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

            one, two = md5(f"{user}:cam:{password}"), md5(f"{request.method}:{given.get('uri')}")
            middle = f"{given.get('nonce')}:{given.get('nc')}:{given.get('cnonce')}:auth"
            if given.get("uri") == request.path and given.get("response") == md5(f"{one}:{middle}:{two}"):
                return None
            return f'Digest realm="cam", nonce="{secrets.token_hex(8)}", qop="auth"'
        return None

    async def _answer(self, request):
        self.requests.append((request.method, request.path))
        if challenge := self._challenge(request):
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        if request.method == "DELETE":
            visit = self.visits.get(request.path.rpartition("/")[2])
            if visit is None:
                return web.Response(status=404)
            self.deleted += 1
            await visit.peer.close()
            return web.Response()
        if self.script.redirect:
            target, self.script.redirect = self.script.redirect, ""
            return web.Response(status=307, headers={"Location": target})
        await asyncio.sleep(self.script.answer_seconds)  # what the script asks for
        if self.script.statuses:
            return web.Response(status=self.script.statuses.pop(0), headers={"Retry-After": "1"})
        if request.content_type != "application/sdp":
            return web.Response(status=415)
        self.offers += 1
        visit, name = _Visit(self.script), secrets.token_hex(8)
        self.visits[name] = visit
        sdp = self.script.answer(await visit.answer(await request.text()))
        headers = {"Location": f"/session/{name}", "ETag": '"1"'}
        return web.Response(status=201, body=sdp.encode(), content_type="application/sdp", headers=headers)
