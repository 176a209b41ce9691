"""The HTTP half of WHEP: it posts an offer, returns the answer, and deletes the session in the end. Blocking."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from drivers.camera_tls import camera_context, may_be_older
from drivers.rtsp.client.accounts import Account, Proofs
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.errors import AccountRefused, CameraRefused, CameraUnreachable
from drivers.system_messages import system_words

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
