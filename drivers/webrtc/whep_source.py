"""A video source over WebRTC: pictures as the camera encoded them, never decoded. Blocking; belongs in a thread.

The session has an event loop of its own, which runs only while the thread waits for packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import socket
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from drivers.contract import ProtocolViolation
from drivers.rtsp.client.accounts import Account, Proofs, camera_context, may_be_older
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.errors import AccountRefused, CameraRefused, CameraStalled, CameraUnreachable
from drivers.rtsp.frames import AudioFormat, EncodedFrame, VideoFormat
from drivers.rtsp.sdp import Media
from drivers.rtsp.video_track import LONGEST_DAMAGED_SECONDS, FootageLost, VideoTrack, recordable
from drivers.system_messages import system_words
from drivers.webrtc.connection import WebRtcLine
from drivers.webrtc.whep_dialogue import parse_answer

_POLL_SECONDS = 0.25
"""The longest wait for packets in one `receive`; after it, time limits and requests for keyframes are checked."""

T = TypeVar("T")

_LARGEST_ANSWER = 131_072
_MOST_TRIES = 4
_MOVED = frozenset({301, 302, 307, 308})
_FAREWELL_SECONDS = 1.0
SCHEMES: Final = {"whep": "http", "wheps": "https"}


class WhepSession:
    """One session at the camera. Only `interrupt` may be called from another thread.

    `url` (`whep://` or `wheps://`) may hold an account, or a token as the password without a user name. Both are sent
    to the URL's own host only, and appear in no error.
    """

    def __init__(self, *, url: str, seconds: float) -> None:
        """Set up a session. `seconds` is how long connecting and each answer may take."""
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        self._home = (parts.hostname, parts.port)
        self.host = parts.hostname or ""
        """The camera's host, as the URL names it."""
        bare = parts._replace(scheme=SCHEMES[parts.scheme.lower()], netloc=parts.netloc.rpartition("@")[2])
        self._url = bare.geturl()
        self._seconds = seconds
        self._session_url = ""
        self._connection: http.client.HTTPConnection | None = None
        self._token = password if not user else ""
        self._habits = CameraHabits()
        self._proofs = Proofs(Account(user, password) if user else None, self._habits)
        self._interrupted = False

    def interrupt(self) -> None:
        """End `begin` in the thread that waits in it; callable from any thread."""
        self._interrupted = True
        connection = self._connection
        if connection is not None and isinstance(connection.sock, socket.socket):
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def begin(self, offer: str) -> bytes:
        """Post an offer; return the camera's answer.

        Raises:
            CameraUnreachable: no connection, or no answer in time.
            CameraRefused: the camera refused.
        """
        url = self._url
        for _ in range(_MOST_TRIES):
            status, headers, body = self._ask("POST", url, offer.encode(), self._seconds)
            if status in _MOVED and headers.get("location"):
                url = urljoin(url, headers["location"])
                if urlsplit(url).scheme not in SCHEMES.values():
                    raise CameraRefused("the camera sends us to an address that is not HTTP")
                continue
            if status == 401 and self._may_prove(url, headers):
                continue
            _expect(status)
            location = headers.get("location", "")
            self._session_url = urljoin(url, location) if location else ""
            return body
        raise AccountRefused("the camera refused the account (user name or password)")

    def end(self) -> None:
        """Delete the session at the camera, if it answers within a second; errors are ignored."""
        url, self._session_url = self._session_url, ""
        if url:
            with contextlib.suppress(CameraUnreachable):
                status, headers, _ = self._ask("DELETE", url, b"", _FAREWELL_SECONDS)
                if status == 401 and self._may_prove(url, headers):
                    self._ask("DELETE", url, b"", _FAREWELL_SECONDS)

    def _ask(self, method: str, url: str, body: bytes, seconds: float) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        headers = {"Content-Type": "application/sdp", "Accept": "application/sdp", "User-Agent": "edge-gateway"}
        if method == "DELETE":
            headers = {"User-Agent": "edge-gateway"}
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        if self._is_home(parts) and (proof := self._proofs.proof(method, path)):
            headers["Authorization"] = proof
        elif self._is_home(parts) and self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection = self._new_connection(parts, seconds)
        try:
            try:
                connection.connect()
            except OSError as error:
                if parts.scheme != "https" or self._interrupted or not may_be_older(error):
                    raise
                self._habits.older_tls = not self._habits.older_tls
                connection = self._connection = self._new_connection(parts, seconds)
                connection.connect()
            if self._interrupted and method == "POST":
                raise CameraUnreachable("reading was ended")
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            read = answer.read(_LARGEST_ANSWER)
            fields = {name.lower(): value for name, value in answer.getheaders()}
        except ConnectionRefusedError:
            raise CameraUnreachable("nothing listens at the camera's address") from None
        except TimeoutError:
            raise CameraUnreachable("the camera did not answer in time") from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise CameraUnreachable(f"no connection to the camera ({system_words(error)})") from None
        else:
            return answer.status, fields, read
        finally:
            self._connection = None
            connection.close()

    def _is_home(self, parts: SplitResult) -> bool:
        return (parts.hostname, parts.port) == self._home

    def _may_prove(self, url: str, headers: Mapping[str, str]) -> bool:
        """Take the challenge of a 401; return whether another attempt makes sense."""
        return self._is_home(urlsplit(url)) and self._proofs.take(headers.get("www-authenticate", ""))

    def _new_connection(self, parts: SplitResult, seconds: float) -> http.client.HTTPConnection:
        if parts.scheme != "https":
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
        context = camera_context(older=self._habits.older_tls)
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=seconds, context=context)


def _expect(status: int) -> None:
    match status:
        case 200 | 201:
            return
        case 401 | 403:
            raise AccountRefused("the camera refused the account (user name, password or token)")
        case 404 | 405:
            raise CameraRefused("the camera has no stream at this path, or it is no WHEP address")
        case 409:
            raise CameraRefused("the camera has no picture to show just now (status 409)")
        case 429 | 453 | 503:
            raise CameraRefused(f"the camera serves no more viewers just now (status {status})")
        case 400 | 406 | 415 | 422:
            raise CameraRefused(f"the camera refused the offer: neither H.264 nor H.265, or no WHEP (status {status})")
        case _:
            raise CameraRefused(f"the camera refused the session (status {status})")


class WhepSource:
    """One session with one camera, to be opened once and read until it raises (`drivers.video_sources.Source`).

    `url` may hold credentials, which are sent to the camera only and appear in no error and no log. Only `interrupt`
    may be called from another thread.
    """

    def __init__(
        self,
        *,
        url: str,
        open_seconds: float = 10.0,
        stall_seconds: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_seconds = open_seconds
        self._stall_seconds = stall_seconds
        self._monotonic = monotonic
        self._session = WhepSession(url=url, seconds=open_seconds)
        self._runner = asyncio.Runner()
        self._line: WebRtcLine | None = None
        self._track: VideoTrack | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._interrupted = False
        self.sound: AudioFormat | None = None
        """Always None: the offer asks for video only."""
        self.why_silent = "sound is recorded from cameras that are read by RTSP alone"

    def open(self) -> VideoFormat | None:
        """Connect and start the stream; return the announced format, or None when it comes with the first keyframe.

        Raises:
            CameraUnreachable: no answer, no connection for packets, or not within `open_seconds`.
            CameraRefused: the camera refused, has no video, or sends a codec that is not recorded.
        """
        self._loop = self._runner.get_loop()
        offer = self._wait_for(self._begin_line(), "no addresses for WebRTC were found in time")
        answer = self._session.begin(offer)
        try:
            answered = parse_answer(answer)
        except ProtocolViolation as error:
            raise CameraUnreachable(str(error)) from error
        video = recordable([Media("video", "", answered.encodings)] if answered.encodings else [])
        line = self._open_line()
        self._wait_for(
            line.connect(answered), "the camera's WebRTC ports did not answer in time: its UDP must be open to us"
        )
        self._track = VideoTrack(encodings=video.encodings, lossy=True, now=self._monotonic())
        return self._track.format

    def batches(self) -> Iterator[Sequence[EncodedFrame | FootageLost]]:
        """Iterate over complete access units that arrive together, in decoding order from a keyframe on.

        A keyframe is requested whenever a picture was lost.

        Raises:
            CameraStalled: no picture came within `stall_seconds`, or no complete one within half a minute.
            CameraEnded: the camera ended the session.
            CameraUnreachable: `interrupt` was called.
        """
        line, track = self._open_line(), self._track
        if track is None:
            raise CameraUnreachable("the source is not open")
        damaged = 0
        wants_keyframe = True
        while True:
            packets = self._wait_for(
                line.receive(_POLL_SECONDS, wants_keyframe=wants_keyframe), "the event loop of the session hangs"
            )
            now = self._monotonic()
            if frames := track.frames(packets, now):
                if any(isinstance(frame, EncodedFrame) and frame.keyframe for frame in frames):
                    wants_keyframe = False
                yield frames
            wants_keyframe = wants_keyframe or track.damaged > damaged
            damaged = track.damaged
            if track.silence.is_too_long(now, seconds=self._stall_seconds):
                raise CameraStalled(f"no video for {now - track.silence.heard_at:.0f} s")
            if track.silence.heard_at - track.came_through_at > LONGEST_DAMAGED_SECONDS:
                raise CameraStalled("no picture came through whole: the network loses too many packets")

    def gather(self, size: int) -> None:
        """Do nothing: WebRTC's library reads each packet as it comes."""

    def interrupt(self) -> None:
        """End `open` or `batches` in the thread that waits in them; callable from any thread."""
        self._interrupted = True
        self._session.interrupt()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._stop_waiting)

    def close(self) -> None:
        """End the session and close the connection. Call it from the thread that reads."""
        line, self._line = self._line, None
        if line is not None:
            self._runner.run(line.close())
        self._session.end()
        self._runner.close()

    async def _begin_line(self) -> str:
        local = await _local_addresses(self._session.host)
        self._line = WebRtcLine(monotonic=self._monotonic, local=local)
        return await self._line.offer()

    def _open_line(self) -> WebRtcLine:
        if self._line is None:
            raise CameraUnreachable("the source is not open")
        return self._line

    def _wait_for(self, work: Coroutine[Any, Any, T], too_long: str) -> T:
        async def bounded() -> T:
            self._waiting = asyncio.current_task()
            try:
                if self._interrupted:
                    work.close()
                    raise CameraUnreachable("reading was ended")
                async with asyncio.timeout(self._open_seconds):
                    return await work
            finally:
                self._waiting = None

        try:
            return self._runner.run(bounded())
        except TimeoutError:
            raise CameraUnreachable(too_long) from None
        except asyncio.CancelledError:
            raise CameraUnreachable("reading was ended") from None

    def _stop_waiting(self) -> None:
        if self._interrupted and self._waiting is not None:
            self._waiting.cancel()


async def _local_addresses(host: str) -> tuple[str, ...]:
    """Return the loopback addresses of a camera's host; none for a camera on another machine."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # reported when connecting
        return ()
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return tuple(address for address in addresses if ipaddress.ip_address(address.partition("%")[0]).is_loopback)
