"""RTSP 1.0 (RFC 2326) on the client's side: requests and answers of both ends, and their headers. Pure.

Texts of the camera that are no UTF-8 keep their bytes (surrogateescape), so that they go back as they came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drivers.contract import ProtocolViolation

_ESCAPES = "surrogateescape"
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f]")
_DIGITS = re.compile(r"\d{1,9}")
LONGEST_LINE = 2_048
_REQUEST_LINE = re.compile(rb"[A-Z_]{3,20} [\x21-\x7e]{1,2000} RTSP/\d\.\d\r?\Z")
_BEGUN_REQUEST_LINE = re.compile(rb"[A-Z_]{1,20}(?: [\x21-\x7e]{0,2000}(?: [RTSP/\d.]{0,8}\r?)?)?\Z")
_ALIVE = frozenset({"OPTIONS", "GET_PARAMETER", "SET_PARAMETER"})
_LEAVES = frozenset({"TEARDOWN", "REDIRECT"})


@dataclass(frozen=True, slots=True)
class RtspResponse:
    """One answer. Header names are in lower case; repeated headers are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def sequence(self) -> int:
        """The number (CSeq) of the request that this answers; -1 when it has none."""
        value = self.headers.get("cseq", "")
        return int(value) if _DIGITS.fullmatch(value) else -1


@dataclass(frozen=True, slots=True)
class CameraRequest:
    """One request of the camera to us (RFC 2326, 10): most only ask whether we are still there."""

    method: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ends_session(self) -> bool:
        """True when the camera ends the session with it, or sends us to another address."""
        return self.method in _LEAVES


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """A session's id, and the seconds without a request after which the camera ends it."""

    name: str
    timeout: float


def parse_response_head(head: bytes) -> RtspResponse:
    """Parse the head of an answer, without the empty line behind it.

    Raises:
        ProtocolViolation: the bytes are no RTSP answer.
    """
    first, headers = _parse_head(head)
    parts = first.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith("RTSP/") or not _DIGITS.fullmatch(parts[1]):
        raise ProtocolViolation("the camera's answer is not RTSP")
    return RtspResponse(status=int(parts[1]), headers=headers)


def parse_request_head(head: bytes) -> CameraRequest:
    """Parse the head of a request of the camera, without the empty line behind it."""
    first, headers = _parse_head(head)
    return CameraRequest(method=first.partition(" ")[0], headers=headers)


def begins_request(data: bytes) -> bool | None:
    """Return whether these bytes begin with the first line of a request; None while that line is incomplete."""
    line, end, _ = data[: LONGEST_LINE + 1].partition(b"\n")
    if end:
        return _REQUEST_LINE.match(line) is not None
    return None if len(line) <= LONGEST_LINE and _BEGUN_REQUEST_LINE.match(line) else False


def request(method: str, url: str, sequence: int, headers: Mapping[str, str]) -> bytes:
    """Encode a request."""
    lines = [f"{method} {url} RTSP/1.0", f"CSeq: {sequence}", "User-Agent: edge-gateway"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode(
        errors=_ESCAPES
    )


def reply(asked: CameraRequest) -> bytes:
    """Encode the answer to a request of the camera (RFC 2326, 10.1): 501 for what it need not ask of a viewer."""
    known = asked.method in _ALIVE or asked.ends_session
    lines = ["RTSP/1.0 200 OK" if known else "RTSP/1.0 501 Not Implemented"]
    lines += [f"{name}: {asked.headers[name.lower()]}" for name in ("CSeq", "Session") if name.lower() in asked.headers]
    if asked.method == "OPTIONS":
        lines.append("Public: OPTIONS, GET_PARAMETER, SET_PARAMETER, TEARDOWN")
    return "\r\n".join([*lines, "", ""]).encode(errors=_ESCAPES)


def sendable(url: str) -> str:
    """Return a URL with its blanks and control characters encoded, which would end it in a request's first line."""
    return _UNSENDABLE.sub(lambda found: f"%{ord(found[0]):02X}", url)


def parse_session(value: str) -> SessionHeader:
    """Parse a `Session` header; 60 s where it names no time-out (RFC 2326, 12.37)."""
    name, *rest = (part.strip() for part in value.partition(",")[0].split(";"))
    pairs = (part.partition("=") for part in rest)
    given = {key.strip().lower(): text for key, _, text in pairs}.get("timeout", "")
    found = _DIGITS.search(given)
    return SessionHeader(name=name, timeout=float(found[0]) if found and int(found[0]) else 60.0)


def parse_rtp_info(value: str) -> dict[str, int]:
    """Return the RTP time at which each stream begins (RFC 2326, 12.33), by the last part of the stream's URL."""
    found: dict[str, int] = {}
    for entry in value.split(","):
        fields = {name.strip().lower(): text for name, _, text in (part.partition("=") for part in entry.split(";"))}
        if _DIGITS.fullmatch(time := fields.get("rtptime", "").strip()) or (time.isdecimal() and len(time) < 21):
            found[last_part(fields.get("url", ""))] = int(time) & 0xFFFFFFFF
    return found


def last_part(url: str) -> str:
    """Return the last part of a URL's path, which tells the streams of one camera apart."""
    return url.strip().rstrip("/").rpartition("/")[2]


def _parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    """Return the first line, and the headers. A line that begins with a blank continues the one before."""
    first, *lines = head.decode(errors=_ESCAPES).lstrip("\r\n").split("\n")
    headers: dict[str, str] = {}
    key = ""
    for line in lines:
        if line[:1] in {" ", "\t"} and key:
            headers[key] = f"{headers[key]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        key = name.strip().lower() if colon else ""
        if key:
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
    return first.strip(), headers
