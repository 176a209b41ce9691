"""One RTSP session with a camera, from DESCRIBE to TEARDOWN, kept alive, over TCP or UDP. Blocking."""

from __future__ import annotations

import contextlib
import re
import secrets
import select
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from drivers.rtsp.audio_clock import SenderReport
from drivers.rtsp.client.accounts import Account
from drivers.rtsp.client.connection import Packets, ReadBuffers, RtspConnection
from drivers.rtsp.client.habits import CameraHabits, KeepAlive, KeepAliveHabits
from drivers.rtsp.client.messages import RtspResponse, SessionHeader, last_part, parse_rtp_info, parse_session
from drivers.rtsp.client.udp_ports import OneSender, RtpPorts, Sender
from drivers.rtsp.errors import AccountRefused, CameraEnded, CameraMoved, CameraRefused, CameraSilent, CameraUnreachable
from drivers.rtsp.rtp_packets import Reordering
from drivers.rtsp.sdp import Media, parse_description, session_control

Transport = Literal["tcp", "udp"]
_MOST_REDIRECTS = 3
_MOST_SOUNDS = 4
_POLL_MILLIS = 100
_LEAVE_SECONDS = 0.5
_PROOF_SECONDS = 1.0
_NO_SESSION, _INVALID_RANGE, _NO_AGGREGATE = 454, 457, 459
_OTHER_TRANSPORT = frozenset({400, 406, 461, 500, 501})
"""Answers to the first SETUP after which the other transport is tried; 461 is the right one (RFC 2326, 11.3.14)."""
_OTHER_ADDRESS = frozenset({400, 404, 405})
"""Answers to PLAY after which another address of the session is tried: some cameras take none with a `/` behind it."""
_MOVED = frozenset({301, 302, 303, 305, 307})
_RTCP_SENDER_REPORT, _RTCP_RECEIVER_REPORT, _RTCP_BYE = 200, 201, 203
_NUMBER = re.compile(r"[0-9]{1,5}")
_SENDER_REPORT = struct.Struct("!4xIQI")


@dataclass(frozen=True, slots=True)
class Arrived:
    """Packets of one medium in order, valid until the next `receive`. `medium` is 0 for the video, 1 for the sound."""

    medium: int
    packets: list[bytes | memoryview]
    report: SenderReport | None = None
    """The camera's sender report of this medium, None for none; over UDP it may be newer than these packets."""


class RtspViewing:
    """One session with a camera: call `describe`, `play`, `receive` until it raises, and `close`.

    Only `interrupt` may be called from other threads.
    """

    def __init__(
        self,
        *,
        url: str,
        transport: Transport,
        habits: CameraHabits,
        seconds: float,
        buffers: ReadBuffers,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up a session. `url` may hold credentials, which appear in no error.

        `habits` are those of the camera, and learn from this session. `seconds` is how long connecting and each answer
        may take.
        """
        self._parts = self._home = urlsplit(url)
        self._habits = habits
        self._transport: Transport = "tcp" if habits.udp_fails else transport
        self._seconds = seconds
        self._buffers = buffers
        self._monotonic = monotonic
        self._connection: RtspConnection | None = None
        self._interrupted = False
        self._moves = 0
        self._session: SessionHeader | None = None
        self._url = self._asked = ""
        self._channels: dict[int, int] = {}
        self._report_channels: dict[int, int] = {}
        self._ports: list[RtpPorts] = []
        self._orders: list[Reordering] = []
        self._senders: list[OneSender] = []
        self._poll = select.poll()
        self._listed = False
        self._keepalive: KeepAlive | None = None
        self._forgotten = 0
        self._ssrc = secrets.token_bytes(4)
        self.begins: tuple[int | None, ...] = ()
        """For each medium, the RTP time at which the camera says that it begins to play; None when it does not say."""

    @property
    def over(self) -> Transport:
        """The transport in use, which is another than asked for when the camera refused that one."""
        return self._transport

    @property
    def why_nothing_came(self) -> str:
        """A likely cause of missing packets, as the end of a sentence; "" when none is known."""
        if self._transport == "tcp":
            return ""
        if any(ports.passed_over for ports in self._ports):
            return "; its UDP comes from another port or with another SSRC than it named"
        return "; a firewall may hold up its UDP"

    def interrupt(self) -> None:
        """End all waits in the thread that reads; callable from any thread."""
        self._interrupted = True
        if self._connection is not None:
            self._connection.interrupt()

    def describe(self) -> list[Media]:
        """Connect and return the media that the camera offers. Redirects are followed.

        Raises:
            CameraUnreachable: no connection, or no answer in time.
            CameraRefused: the camera refused.
            CameraEnded: the camera hung up.
        """
        while True:
            self._connect()
            self._asked = self._url
            location = self._ask_options()
            if not location:
                answer = self._ask_description()
                location = _moved_to(answer)
                if not location:
                    _expect(answer)
                    self._url = session_control(answer.body, base=_base(self._url, answer.headers))
                    return parse_description(answer.body, base=self._url)
            self._move(location)

    def _move(self, location: str) -> None:
        """End the session, so that `describe` begins anew at the address to which the camera sends us."""
        self.close()
        self._moves += 1
        if self._moves > _MOST_REDIRECTS:
            raise CameraRefused("the camera sends us from one address to the next")
        self._parts = _moved(self._home, self._asked, location)
        self._session = None
        self._channels, self._report_channels, self._orders = {}, {}, []

    def _ask_options(self) -> str:
        """Ask for the methods that the camera knows; return the address to which it sends us instead, "" for none.

        RFC 2326 does not demand the question. A camera that hangs up at it, or does not answer, is not asked again.
        """
        self._listed = False
        if self._habits.ends_at_options:
            return ""
        try:
            answer = self._open_connection().ask("OPTIONS", self._url)
        except CameraSilent:
            self._habits.ends_at_options = not self._interrupted
            raise
        except (CameraEnded, CameraUnreachable):
            self._connect_without_options()
            return self._ask_options()
        self._listed = "GET_PARAMETER" in answer.headers.get("public", "").upper()
        return _moved_to(answer)

    def _ask_description(self) -> RtspResponse:
        had_options = not self._habits.ends_at_options
        try:
            return self._open_connection().ask("DESCRIBE", self._url, {"Accept": "application/sdp"})
        except CameraSilent:
            self._habits.ends_at_options = False  # OPTIONS was not the cause
            raise
        except (CameraEnded, CameraUnreachable):
            if not had_options:
                self._habits.ends_at_options = False
                raise
            self._connect_without_options()
            return self._ask_description()

    def _connect_without_options(self) -> None:
        """Connect again to a camera that hung up at OPTIONS, or after its answer."""
        if self._interrupted:
            raise CameraUnreachable("reading was ended")
        self._habits.ends_at_options = True
        self.close()
        self._connect()

    def play(self, video: Media, sounds: Sequence[Media]) -> int | None:
        """Start the video, and the first of these sounds that the camera does not refuse; return that one's place.

        Raises as `describe`, and CameraMoved if the camera sends us to another address, which `describe` asks then.
        """
        connection = self._open_connection()
        self._set_up(connection, video, 0)
        place = self._set_up_sound(connection, sounds)
        media = [video] if place is None else [video, sounds[place]]
        self._take_channels_asked_for(connection, len(media))
        self._senders = [OneSender(medium.encodings) for medium in media]
        answer = self._start(connection, media)
        starts = parse_rtp_info(answer.headers.get("rtp-info", ""))
        self.begins = tuple(starts.get(last_part(medium.control)) for medium in media)
        self._keepalive = KeepAlive(
            listed=self._listed,
            timeout=self._session.timeout if self._session else 60.0,
            habits=self._keepalive_habits(),
            now=self._monotonic(),
        )
        self._poll.register(connection.fileno(), select.POLLIN)
        for ports in self._ports:
            for number in ports.filenos():
                self._poll.register(number, select.POLLIN)
            ports.report(self._receiver_report())
        return place

    def _keepalive_habits(self) -> KeepAliveHabits:
        """Return what is known of keep-alives; OPTIONS is none of them where the camera ends at it from the start."""
        known = self._habits.keepalive
        return replace(known, hangs_up=known.hangs_up | {"OPTIONS"}) if self._habits.ends_at_options else known

    def gather(self, size: int, seconds: float) -> None:
        """Make `receive` wait until `size` bytes are there or `seconds` have passed. No effect over UDP."""
        if self._connection is not None and not self._ports:
            self._connection.gather(size, seconds)

    def receive(self) -> list[Arrived]:
        """Wait for the next packets; return an empty list when none came within 0.1 s, or the time set by `gather`.

        Raises:
            CameraEnded: the camera ended the session.
            CameraUnreachable: the connection broke.
        """
        connection = self._open_connection()
        try:
            now = self._monotonic()
            if self._keepalive is not None and (method := self._keepalive.due(now)):
                self._keep_alive(connection, method)
            arrived = self._interleaved(connection.read()) if not self._ports else self._datagrams(connection)
            for answer in connection.answers():
                self._heed(connection, answer)
        except (CameraEnded, CameraUnreachable):
            self._learn(hung_up=True)
            raise
        return arrived

    def fell_silent(self, *, had_pictures: bool) -> None:
        """Note that the camera sends nothing any more. `had_pictures`: whether it sent anything of use before."""
        self._learn(hung_up=False)
        if not had_pictures:
            self._habits.udp_fails = self._transport == "udp"

    def _learn(self, *, hung_up: bool) -> None:
        keepalive, self._keepalive = self._keepalive, None
        if keepalive is not None and not self._interrupted:
            self._habits.keepalive = keepalive.ended(self._monotonic(), hung_up=hung_up)

    def close(self) -> None:
        """End the session at the camera, if it still answers, and close the connection and the ports."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._session is not None and not self._interrupted:
                with contextlib.suppress(CameraUnreachable, CameraEnded):
                    sent = connection.send("TEARDOWN", self._url, self._session_header())
                    # Closing a connection with unread bytes resets it (RFC 2525, 2.17), and then the camera may never
                    # read the TEARDOWN. Its session would stay and use up the camera's viewers. So wait for the answer.
                    connection.wait_for(sent, seconds=_LEAVE_SECONDS)
            connection.close()
        self._close_ports()

    def _close_ports(self) -> None:
        for ports in self._ports:
            ports.close()
        self._ports.clear()

    def _connect(self) -> None:
        parts = self._parts
        encrypted = parts.scheme.lower() == "rtsps"
        account = None
        if parts.username is not None:
            account = Account(user=unquote(parts.username), password=unquote(parts.password or ""))
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        connection = RtspConnection(
            host=parts.hostname or "",
            port=parts.port or (322 if encrypted else 554),
            encrypted=encrypted,
            account=account,
            habits=self._habits,
            seconds=self._seconds,
            buffers=self._buffers,
            monotonic=self._monotonic,
        )
        self._connection = connection
        connection.open()
        if self._interrupted:
            raise CameraUnreachable("reading was ended")

    def _open_connection(self) -> RtspConnection:
        if self._connection is None:
            raise CameraUnreachable("the source is not open")
        return self._connection

    def _set_up(self, connection: RtspConnection, medium: Media, number: int) -> None:
        answer = self._ask_transport(connection, medium, number)
        if not self._session and (
            answer.status in _OTHER_TRANSPORT or (self._transport == "tcp" and _names_udp_alone(answer))
        ):
            self._transport = "tcp" if self._transport == "udp" else "udp"
            answer = self._ask_transport(connection, medium, number)
        if not number:
            self._follow(answer)
        _expect(answer)
        if session := answer.headers.get("session"):
            self._session = parse_session(session)
        fields = _fields(answer.headers.get("transport", ""))
        if self._transport == "udp" and "interleaved" in fields:
            self._transport = "tcp"
            self._close_ports()
        if self._transport == "tcp":
            first, second = _pair(fields.get("interleaved", ""), most=255) or (2 * number, 2 * number + 1)
            connection.channels.update((first, second))
            self._channels.setdefault(first, number)
            self._report_channels.setdefault(second, number)
        else:
            port, reports_port = _pair(fields.get("server_port", ""), most=65_535) or (0, 0)
            self._ports[-1].expect(Sender(port, reports_port, _ssrc(fields.get("ssrc", ""))))
            self._orders.append(Reordering())

    def _set_up_sound(self, connection: RtspConnection, sounds: Sequence[Media]) -> int | None:
        """Set up the first of these sounds that the camera does not refuse; return its place."""
        for place, sound in enumerate(() if self._habits.ends_at_sound else sounds[:_MOST_SOUNDS]):
            try:
                self._set_up(connection, sound, 1)
            except (CameraEnded, CameraUnreachable):
                self._habits.ends_at_sound = not self._interrupted
                raise
            except CameraRefused:
                while len(self._ports) > 1:
                    self._ports.pop().close()
                continue
            return place
        return None

    def _take_channels_asked_for(self, connection: RtspConnection, playing: int) -> None:
        """Take packets on the channels that were asked for too: some cameras name others, and then do not use them."""
        if self._transport == "tcp":
            named = self._channels.keys() | self._report_channels.keys()
            for number in range(playing):
                for channel, numbers in ((2 * number, self._channels), (2 * number + 1, self._report_channels)):
                    if channel not in named:
                        numbers[channel] = number
                        connection.channels.add(channel)

    def _start(self, connection: RtspConnection, media: list[Media]) -> RtspResponse:
        """Begin to play; return the answer.

        Cameras may refuse the range, or a request for all media at once; some send pictures instead of an answer.
        """
        try:
            answer = connection.ask("PLAY", self._url, {**self._session_header(), "Range": "npt=0.000-"})
        except CameraSilent:
            if not connection.has_packets:
                raise
            return RtspResponse(status=200, headers={})
        self._follow(answer)
        if answer.status == _INVALID_RANGE:
            answer = connection.ask("PLAY", self._url, self._session_header())
        for url in (self._url.rstrip("/"), self._asked):
            if answer.status in _OTHER_ADDRESS and url != self._url:
                self._url = url
                answer = connection.ask("PLAY", self._url, self._session_header())
        if answer.status == _NO_AGGREGATE:
            self._url = media[0].control
            for medium in media:
                answer = connection.ask("PLAY", medium.control, self._session_header())
                _expect(answer)
        _expect(answer)
        return answer

    def _follow(self, answer: RtspResponse) -> None:
        if location := _moved_to(answer):
            self._move(location)
            raise CameraMoved("the camera sends us to another address")

    def _ask_transport(self, connection: RtspConnection, medium: Media, number: int) -> RtspResponse:
        if self._transport == "tcp":
            self._close_ports()
            wanted = f"RTP/AVP/TCP;unicast;interleaved={2 * number}-{2 * number + 1}"
        else:
            ports = RtpPorts(local_host=connection.local_host, remote_host=connection.remote_host)
            ports.open()
            self._ports.append(ports)
            wanted = f"RTP/AVP;unicast;client_port={ports.first}-{ports.first + 1}"
        return connection.ask("SETUP", medium.control, {"Transport": wanted, **self._session_header()})

    def _interleaved(self, packets: Packets) -> list[Arrived]:
        """Return packets and reports in order of arrival, which may be all that tells the sound of a picture."""
        arrived: list[Arrived] = []
        now = self._monotonic()
        for channel, same in packets:
            number = self._channels.get(channel)
            if number is not None:
                arrived.append(Arrived(number, self._senders[number].packets(same, now)))
                continue
            number = self._report_channels.get(channel, 0)
            reports = (self._heed_report(packet, number) for packet in same)
            arrived += [Arrived(number, [], report) for report in reports if report is not None]
        return arrived

    def _datagrams(self, connection: RtspConnection) -> list[Arrived]:
        ready = {number for number, _ in self._poll.poll(_POLL_MILLIS)}
        if connection.fileno() in ready:
            connection.read()
        now = self._monotonic()
        arrived = []
        for number, (ports, order) in enumerate(zip(self._ports, self._orders, strict=True)):
            packets, reports = ports.receive()
            clocks = [self._heed_report(report, number) for report in reports]
            turned: list[bytes | memoryview] = []
            for packet in self._senders[number].packets(packets, now) if packets else ():
                turned += order.push(packet, now)
            if turned or reports:
                arrived.append(Arrived(number, turned, next((each for each in reversed(clocks) if each), None)))
        return arrived

    def _heed_report(self, report: bytes | memoryview, number: int) -> SenderReport | None:
        """Return the newest sender report in an RTCP packet (RFC 3550, 6.4) of a medium; None when there is none.

        Raises CameraEnded for a BYE of the first medium's sender (6.6). That of another session is ignored.
        """
        at = 0
        newest: SenderReport | None = None
        while at + 4 <= len(report) and report[at] & 0xC0 == 0x80:
            until = at + 4 + 4 * (report[at + 2] << 8 | report[at + 3])
            if report[at + 1] == _RTCP_BYE and not number and self._senders[0].ssrc:
                leaving = bytes(report[at + 4 : min(until, at + 4 + 4 * (report[at] & 0x1F))])
                if not leaving or self._senders[0].ssrc in (leaving[n : n + 4] for n in range(0, len(leaving), 4)):
                    raise CameraEnded("the camera ended the stream")
            if report[at + 1] == _RTCP_SENDER_REPORT and at + _SENDER_REPORT.size <= len(report):
                _, clock, timestamp = _SENDER_REPORT.unpack_from(report, at)
                newest = SenderReport(clock, timestamp)
            at = until
        return newest

    def _keep_alive(self, connection: RtspConnection, method: str) -> None:
        connection.send(method, self._url, self._session_header())
        for ports in self._ports:
            ports.report(self._receiver_report())
        if not self._ports:
            channel = next((channel for channel, number in self._report_channels.items() if not number), 1)
            connection.send_packet(channel, self._receiver_report())

    def _heed(self, connection: RtspConnection, answer: RtspResponse) -> None:
        """React to the answer to a keep-alive."""
        if self._keepalive is None:
            return
        now = self._monotonic()
        self._keepalive.answered(answer.status, now)
        if answer.status == 401 and connection.challenged(answer):
            self._keepalive.again(now + _PROOF_SECONDS)
        self._forgotten = self._forgotten + 1 if answer.status == _NO_SESSION else 0
        if self._forgotten > 1:  # in answer to either method
            self._learn(hung_up=False)
            raise CameraEnded("the camera has forgotten our session")

    def _session_header(self) -> dict[str, str]:
        return {"Session": self._session.name} if self._session and self._session.name else {}

    def _receiver_report(self) -> bytes:
        return struct.pack("!BBH", 0x80, _RTCP_RECEIVER_REPORT, 1) + self._ssrc


def _expect(answer: RtspResponse) -> None:
    match answer.status:
        case status if 200 <= status < 300:
            return
        case 403:
            raise AccountRefused("the camera refused the account (user name or password)")
        case 404:
            raise CameraRefused("the camera has no stream at this path")
        case 453 | 503:
            raise CameraRefused(f"the camera serves no more viewers just now (status {answer.status})")
        case _:
            raise CameraRefused(f"the camera refused the stream (status {answer.status})")


def _moved_to(answer: RtspResponse) -> str:
    """Return the address to which an answer sends us; "" for none."""
    return answer.headers.get("location", "") if answer.status in _MOVED else ""


def _moved(home: SplitResult, before: str, location: str) -> SplitResult:
    """Return the address of a redirect from `before`. `home`: the address of the site file, with the account."""
    scheme, _, rest = before.partition("://")
    try:
        # urllib joins no addresses of RTSP over TLS
        there = urlsplit(location if "://" in location else f"{scheme}{urljoin(f'http://{rest}', location)[4:]}")
        valid = there.port != 0
    except ValueError:
        raise CameraRefused("the camera sends us to an address that is not RTSP") from None
    if not valid or there.scheme.lower() not in ("rtsp", "rtsps") or not there.hostname:
        raise CameraRefused("the camera sends us to an address that is not RTSP")
    # the account goes to the same host only, and never from an encrypted connection to one that is not
    account, _, bare = there.netloc.rpartition("@")
    if there.hostname != home.hostname or (home.scheme.lower() == "rtsps" and there.scheme.lower() != "rtsps"):
        return there._replace(netloc=bare)
    account = account or home.netloc.rpartition("@")[0]
    return there._replace(netloc=f"{account}@{bare}" if account else bare)


def _base(url: str, headers: Mapping[str, str]) -> str:
    """Return the address to which those of the description are relative (RFC 2326, C.1.1)."""
    base = (headers.get("content-base") or headers.get("content-location") or "").partition(", ")[0]
    if base.startswith("/"):
        return f"{url[: url.find('/', url.find('://') + 3)]}{base}" if url.count("/") > 2 else url + base
    return base if base.lower().startswith(("rtsp://", "rtsps://")) else url


def _names_udp_alone(answer: RtspResponse) -> bool:
    """Return whether an answer to SETUP grants UDP, whatever was asked for."""
    fields = _fields(answer.headers.get("transport", ""))
    return answer.status == 200 and "server_port" in fields and "interleaved" not in fields


def _fields(transport: str) -> dict[str, str]:
    return {name.strip().lower(): value for name, _, value in (part.partition("=") for part in transport.split(";"))}


def _ssrc(value: str) -> bytes:
    """Return the four bytes of an SSRC in hexadecimal; empty when it is invalid or 0."""
    try:
        number = int(value, 16)
    except ValueError:
        return b""
    return number.to_bytes(4, "big") if 0 < number < 2**32 else b""


def _pair(value: str, *, most: int) -> tuple[int, int] | None:
    """Return a pair of numbers of at most `most`, as in `6970-6971`; the second one may be missing."""
    first, _, second = (part.strip() for part in value.partition("-"))
    if not _NUMBER.fullmatch(first) or (second and not _NUMBER.fullmatch(second)):
        return None
    pair = int(first), int(second or int(first) + 1)
    return pair if max(pair) <= most else None
