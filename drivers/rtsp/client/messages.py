"""RTSP 1.0 (RFC 2326) on the client's side: requests, answers, basic and digest authentication (RFC 7616). Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from drivers.contract import ProtocolViolation

_PARAMETER = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))')
_CHALLENGE = re.compile(r"(?:^|,\s*)(Digest|Basic)\s", re.IGNORECASE)
_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}


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
        return int(value) if value.isdecimal() else -1


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """A session's id, and the seconds without a request after which the camera ends it."""

    name: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Challenge:
    """An authentication challenge of the camera."""

    scheme: str
    realm: str = ""
    nonce: str = ""
    algorithm: str = "MD5"
    opaque: str = ""
    quality: bool = False
    """True if `qop=auth` is offered."""
    stale: bool = False
    """True if the account was right and only the nonce was old."""


def parse_response_head(head: bytes) -> RtspResponse:
    """Parse the head of an answer, without the empty line behind it.

    Raises:
        ProtocolViolation: the bytes are no RTSP answer.
    """
    lines = head.decode("utf-8", "replace").splitlines()
    parts = lines[0].split(None, 2) if lines else []
    if len(parts) < 2 or not parts[0].startswith("RTSP/") or not parts[1].isdecimal():
        raise ProtocolViolation("the camera's answer is not RTSP")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        key = name.strip().lower()
        if colon:
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
    return RtspResponse(status=int(parts[1]), headers=headers)


def request(method: str, url: str, sequence: int, headers: Mapping[str, str]) -> bytes:
    """Encode a request."""
    lines = [f"{method} {url} RTSP/1.0", f"CSeq: {sequence}", "User-Agent: edge-gateway"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()


def parse_session(value: str) -> SessionHeader:
    """Parse a `Session` header; 60 s where it names no time-out (RFC 2326, 12.37)."""
    name, *rest = (part.strip() for part in value.split(";"))
    given = dict(part.lower().split("=", 1) for part in rest if "=" in part).get("timeout", "")
    seconds = float(given) if given.isdecimal() and int(given) else 60.0
    return SessionHeader(name=name, timeout=seconds)


def parse_rtp_info(value: str) -> dict[str, int]:
    """Return the RTP time at which each stream begins (RFC 2326, 12.33), by the last part of the stream's URL."""
    found: dict[str, int] = {}
    for entry in value.split(","):
        fields = {name.strip().lower(): text for name, _, text in (part.partition("=") for part in entry.split(";"))}
        if (time := fields.get("rtptime", "").strip()).isdecimal():
            found[last_part(fields.get("url", ""))] = int(time) & 0xFFFFFFFF
    return found


def last_part(url: str) -> str:
    """Return the last part of a URL's path, which tells the streams of one camera apart."""
    return url.strip().rstrip("/").rpartition("/")[2]


def parse_challenges(value: str) -> list[Challenge]:
    """Return the challenges in `WWW-Authenticate` that this client supports, the strongest first."""
    found = []
    matches = list(_CHALLENGE.finditer(value))
    for match, following in zip(matches, [*matches[1:], None], strict=False):
        text = value[match.end() : following.start() if following else None]
        given = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(text)}
        algorithm = given.get("algorithm", "MD5").upper()
        if match[1].lower() == "digest" and algorithm not in _HASHES:
            continue
        found.append(
            Challenge(
                scheme=match[1].lower(),
                realm=given.get("realm", ""),
                nonce=given.get("nonce", ""),
                algorithm=algorithm,
                opaque=given.get("opaque", ""),
                quality="auth" in re.split(r"[,\s]+", given.get("qop", "")),
                stale=given.get("stale", "").lower() == "true",
            )
        )
    return sorted(found, key=lambda one: (one.scheme != "digest", one.algorithm != "SHA-256"))


def authorization(  # noqa: PLR0917  # the parts that go into one hash
    challenge: Challenge, user: str, password: str, method: str, url: str, count: int, client_nonce: str
) -> str:
    """Compute the `Authorization` header that answers a challenge. `count` counts the uses of its nonce from 1."""
    if challenge.scheme == "basic":
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def digest(text: str) -> str:
        return _HASHES[challenge.algorithm](text.encode(), usedforsecurity=False).hexdigest()

    account = digest(f"{user}:{challenge.realm}:{password}")
    asked = digest(f"{method}:{url}")
    parts = {"username": user, "realm": challenge.realm, "nonce": challenge.nonce, "uri": url}
    if challenge.quality:
        counted = f"{count:08x}"
        parts["response"] = digest(f"{account}:{challenge.nonce}:{counted}:{client_nonce}:auth:{asked}")
    else:
        parts["response"] = digest(f"{account}:{challenge.nonce}:{asked}")
    if challenge.opaque:
        parts["opaque"] = challenge.opaque
    text = ", ".join(f'{name}="{value}"' for name, value in parts.items())
    if challenge.quality:
        text += f', qop=auth, nc={counted}, cnonce="{client_nonce}"'
    return f"Digest {text}" + (f", algorithm={challenge.algorithm}" if challenge.algorithm != "MD5" else "")
