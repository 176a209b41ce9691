"""Requests of commands to a running gateway, and the reading and saving of its answers."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

import typer
from pydantic import BaseModel, ValidationError

from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.runtime.unix_sockets import INTERFACE_SOCKET, connect
from gateway.web.answers import LoginAnswer

_CONTROLS = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|\x7f|\xc2[\x80-\x9f]", re.IGNORECASE
)
"""Control characters in a JSON text, with which a name could command the terminal."""

SECONDS = 90.0
_CONNECT_SECONDS = 10.0
_WRONG_USE = 400
_AT_A_TIME = 1 << 20
_BROKE_OFF = "the gateway's answer broke off; look in its log"


class NobodyThere(GatewayUnreachable):
    """No gateway runs on this data folder, or at this address."""


AnswerT = TypeVar("AnswerT", bound=BaseModel)


class LocalConnection(HTTPConnection):
    """HTTP over a gateway's local socket, which is in its run folder."""

    def __init__(self, run_folder: Path, *, seconds: float = SECONDS) -> None:
        super().__init__("localhost")
        self._path = run_folder / INTERFACE_SOCKET
        self._seconds = seconds

    def connect(self) -> None:
        """Connect to the socket. See `HTTPConnection.connect`."""
        self.sock = connect(self._path, within=_CONNECT_SECONDS)
        self.sock.settimeout(self._seconds)


class RunningGatewayClient:
    """A running gateway. A remote one needs a `session`; on the local socket, the kernel identifies the user."""

    def __init__(self, name: str, connection: Callable[[], HTTPConnection]) -> None:
        """Take its `name` for messages, and a function that makes a new connection to it."""
        self._name = name
        self._connection = connection
        self.session = ""

    @classmethod
    def local(cls, run_folder: Path, *, seconds: float = SECONDS) -> Self:
        """Return the gateway on this machine that has this run folder. `seconds`: so long an answer may take."""
        return cls(str(run_folder.parent), lambda: LocalConnection(run_folder, seconds=seconds))

    @classmethod
    def remote(cls, address: str) -> Self:
        """Return the gateway at an address such as `https://host:port`."""
        parts = urlsplit(address)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return cls(parts.netloc, lambda: kind(parts.netloc, timeout=SECONDS))

    def answer_of(self, shape: type[AnswerT], path: str, body: Mapping[str, object] | None) -> AnswerT:
        """Return the answer to a POST of `body`, or to a GET if `body` is None, parsed as `shape`.

        Raises GatewayError as `asked` does, and when the answer does not have this shape.
        """
        return self.read(shape, self.asked(path, body))

    def read(self, shape: type[AnswerT], told: bytes) -> AnswerT:
        """Parse an answer as `shape`, control characters replaced. Raises GatewayError when it has another shape."""
        try:
            return shape.model_validate_json(_CONTROLS.sub(rb"\1\\ufffd", told))
        except ValidationError as error:
            raise GatewayError(
                "the answer does not fit this command's release: restart the gateway, and check what uses its port"
            ) from error

    def asked(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        method: str = "",
        also: tuple[int, ...] = (),
    ) -> bytes:
        """Return the raw answer to a POST of `body`, or to a GET if `body` is None.

        `method` replaces POST or GET. `also` are statuses besides 200 to 299 whose answer is returned too. Raises as
        `answered` does, and GatewayError when the answer breaks off.
        """
        with self.answered(path, body, method=method, also=also) as answer:
            return b"".join(pieces(answer))

    @contextmanager
    def answered(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        method: str = "",
        also: tuple[int, ...] = (),
    ) -> Iterator[HTTPResponse]:
        """Send a request; the context yields the answer, whose body is still to be read. Arguments as for `asked`.

        Raises GatewayError with the gateway's message; ConfigError if the gateway says that the request is wrong (400);
        GatewayUnreachable when no gateway answers.
        """
        connection = self._connection()
        try:
            answer = self._sent(connection, method or ("GET" if body is None else "POST"), path, body)
            if answer.status >= 300 and answer.status not in also:
                refused = ConfigError if answer.status == _WRONG_USE else GatewayError
                raise refused(f"the gateway refused: {_message(answer)}")
            yield answer
        finally:
            connection.close()

    def _sent(
        self, connection: HTTPConnection, method: str, path: str, body: Mapping[str, object] | None
    ) -> HTTPResponse:
        headers = {"Content-Type": "application/json"} | ({"SessionID": self.session} if self.session else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, body=data, headers=headers)
            return connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            raise GatewayError(
                f"the certificate of {self._name} is not trusted: {error.verify_message}; one that the site made itself"
                " is trusted when the variable SSL_CERT_FILE names its file"
            ) from error
        except PermissionError as error:
            raise GatewayUnreachable(
                f"this user may not ask the gateway of {self._name}; be root, or a member of the group edge-gateway"
            ) from error
        except (OSError, HTTPException) as error:
            is_nobody = isinstance(error, FileNotFoundError | NotADirectoryError | ConnectionRefusedError)
            raise (NobodyThere if is_nobody else GatewayUnreachable)(
                f"no gateway answers at {self._name}: start it, look in its log,"
                " or say with --data or --url where it is"
            ) from error


@contextmanager
def session_at(gateway: RunningGatewayClient, user: str, password: str) -> Iterator[None]:
    """Sign in, and sign out when the context ends. Prompts for a code if the account has a second factor."""
    answer = gateway.answer_of(LoginAnswer, "/v1/auth/login", {"username": user, "password": password})
    gateway.session = answer.session
    if answer.user.mfa_enabled:
        gateway.asked("/v1/auth/mfa", {"token": typer.prompt("Code", err=True)})
    try:
        yield
    finally:
        gateway.asked("/v1/auth/logout", {})


def _message(answer: HTTPResponse) -> str:
    try:
        return str(json.loads(answer.read(65536))["error"])
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return f"it answered {answer.status}"


def pieces(answer: HTTPResponse) -> Iterator[bytes]:
    """Yield the body as it arrives. Raises GatewayError when it is incomplete."""
    try:
        while piece := answer.read(_AT_A_TIME):
            yield piece
    except (OSError, HTTPException) as error:
        raise GatewayError(_BROKE_OFF) from error
    if answer.length:  # the number of bytes that are missing
        raise GatewayError(_BROKE_OFF)


def save(gateway: RunningGatewayClient, path: str, file: Path) -> None:
    """Save the answer to a GET in a file, which is replaced only if all of it arrived.

    Raises GatewayError, or ConfigError when the file cannot be written.
    """
    with gateway.answered(path) as answer, replacing(file) as draft, draft.open("wb") as written:
        for piece in pieces(answer):
            written.write(piece)


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield the path of a draft, which replaces the file when the context ends without an error.

    If `file` is not a regular file (such as /dev/stdout), it is written directly. Raises ConfigError when the file
    cannot be written.
    """
    target = file.resolve()  # keep a symbolic link, and replace the file behind it
    plain = target.is_file() or not target.exists()
    draft = target.with_name(f".{target.name}.new") if plain else file
    try:
        try:
            yield draft
            if plain:
                if target.exists():
                    draft.chmod(target.stat().st_mode & 0o7777)
                draft.replace(target)
        finally:
            if plain:
                draft.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
