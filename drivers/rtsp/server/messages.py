"""RTSP 1.0 (RFC 2326) on the server's side: requests, answers, SDP (RFC 4566), digest (RFC 7616, MD5). Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import urlsplit

from drivers.contract import ProtocolViolation
from drivers.rtsp.frames import AudioCodec, AudioFormat, VideoCodec, VideoFormat
from drivers.rtsp.packetizer import PAYLOAD_TYPE, SOUND_PAYLOAD_TYPE

METHODS = ("OPTIONS", "DESCRIBE", "SETUP", "PLAY", "GET_PARAMETER", "TEARDOWN")
TRACK = "trackID=0"
SOUND_TRACK = "trackID=1"
_RATES = {
    rate: index
    for index, rate in enumerate(
        (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
    )
}
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    454: "Session Not Found",
    455: "Method Not Valid in This State",
    461: "Unsupported Transport",
    501: "Not Implemented",
    503: "Service Unavailable",
}
LONGEST_HEAD = 16 * 1024
_LONGEST_LINE = 4 * 1024
_MOST_HEADERS = 64
_LONGEST_NUMBER = 5
_DIGEST_PART = re.compile(r'(?<!\w)(\w+)\s*=\s*(?:"([^"]*)"|([^",\s]*))')


@dataclass(frozen=True, slots=True)
class RtspRequest:
    """One request. Header names are in lower case."""

    method: str
    url: str
    path: str
    """The stream's path: the URL's path without the track's name."""
    headers: Mapping[str, str]
    is_sound: bool = False
    """True if the URL names the sound track."""


@dataclass(frozen=True, slots=True)
class RtspAnswer:
    """One answer, without its sequence number and session, which are added when it is written."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def to_bytes(self, sequence: str) -> bytes:
        """Encode the answer. `sequence` is the CSeq of the request; one that is no number is answered as 0."""
        sequence = sequence if sequence.isascii() and sequence.isdigit() else "0"
        lines = [f"RTSP/1.0 {self.status} {_REASONS.get(self.status, 'Refused')}", f"CSeq: {sequence}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@dataclass(frozen=True, slots=True)
class Credentials:
    """The user name and password that viewers need."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskedTransport:
    """The transport that a viewer asks for: a pair of interleaved channels, or a pair of its UDP ports."""

    interleaved: bool
    first: int
    second: int


def parse_request(head: bytes) -> RtspRequest:
    """Parse the head of a request, without the empty line behind it.

    Raises:
        ProtocolViolation: the bytes are no RTSP request, or it is longer than requests are.
    """
    raw = head.split(b"\r\n", _MOST_HEADERS + 1)
    if len(raw) > _MOST_HEADERS + 1 or max(map(len, raw)) > _LONGEST_LINE:
        raise ProtocolViolation("an RTSP request with too many headers, or with a line that is too long")
    lines = [line.decode("utf-8", "replace") for line in raw]
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("RTSP/1."):
        raise ProtocolViolation("not an RTSP request")
    try:
        path = urlsplit(parts[1]).path
        is_sound = path.endswith(f"/{SOUND_TRACK}")
        path = path.removesuffix(f"/{TRACK}").removesuffix(f"/{SOUND_TRACK}").rstrip("/") or "/"
    except ValueError as error:
        raise ProtocolViolation("an RTSP request for no URL") from error
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return RtspRequest(method=parts[0], url=parts[1], path=path, headers=headers, is_sound=is_sound)


def parse_transport(value: str) -> AskedTransport | None:
    """Return the first transport in a SETUP that this server supports; None when there is none."""
    for option in value.split(","):
        fields = [part.strip() for part in option.split(";")]
        named = dict(part.split("=", 1) for part in fields if "=" in part)
        if fields[0] == "RTP/AVP/TCP":
            pair = _pair(named.get("interleaved", "0-1"), most=255)
            if pair:
                return AskedTransport(interleaved=True, first=pair[0], second=pair[1])
        elif fields[0] in ("RTP/AVP", "RTP/AVP/UDP") and "multicast" not in fields:
            pair = _pair(named.get("client_port", ""), most=65535)
            if pair:
                return AskedTransport(interleaved=False, first=pair[0], second=pair[1])
    return None


def session_description(described: VideoFormat, *, host: str, sound: AudioFormat | None = None) -> bytes:
    """Return the SDP of a stream with this video and, if given, this AAC."""
    name, parameters = _encoding(described)
    lines = (
        "v=0",
        f"o=- 0 0 IN IP4 {host}",
        "s=edge-gateway",
        "c=IN IP4 0.0.0.0",
        "t=0 0",
        "a=control:*",
        "a=range:npt=now-",
        f"m=video 0 RTP/AVP {PAYLOAD_TYPE}",
        f"a=rtpmap:{PAYLOAD_TYPE} {name}/90000",
        f"a=fmtp:{PAYLOAD_TYPE} {parameters}",
        f"a=control:{TRACK}",
        *(() if sound is None else _sound_description(sound)),
    )
    return "\r\n".join([*lines, ""]).encode()


def _sound_description(sound: AudioFormat) -> tuple[str, ...]:
    """Return the SDP lines of AAC (RFC 3640, 3.3.6 and 4.1). It must pass `may_be_served`."""
    config = sound.object_type << 11 | _RATES[sound.rate] << 7 | sound.channels << 3
    parameters = f"mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config={config:04x}"
    return (
        f"m=audio 0 RTP/AVP {SOUND_PAYLOAD_TYPE}",
        f"a=rtpmap:{SOUND_PAYLOAD_TYPE} mpeg4-generic/{sound.rate}/{sound.channels}",
        f"a=fmtp:{SOUND_PAYLOAD_TYPE} streamtype=5;profile-level-id=1;{parameters}",
        f"a=control:{SOUND_TRACK}",
    )


def may_be_served(sound: AudioFormat | None) -> bool:
    """Return whether a stream can carry this sound: AAC of a usual rate, with 1 to 7 as its channels; None cannot."""
    return (
        sound is not None
        and sound.codec is AudioCodec.AAC
        and sound.object_type < 31
        and sound.channels in range(1, 8)
        and sound.rate in _RATES
    )


def _encoding(described: VideoFormat) -> tuple[str, str]:
    """Return the name and the SDP parameters of a video's encoding (RFC 6184, 8.1; RFC 7798, 7.1)."""
    vps, sps, pps = (base64.b64encode(unit).decode() for unit in (described.vps, described.sps, described.pps))
    if described.kind is VideoCodec.H265:
        return "H265", f"sprop-vps={vps};sprop-sps={sps};sprop-pps={pps}"
    profile = described.sps[1:4].hex()
    return "H264", f"packetization-mode=1;profile-level-id={profile};sprop-parameter-sets={sps},{pps}"


class Proof(Enum):
    """The worth of a request's credentials."""

    NONE = auto()
    """Nothing that proves or guesses: no digest, or one for another challenge."""
    WRONG = auto()
    """Another user or password: a guess."""
    RIGHT = auto()


def proof_of(request: RtspRequest, credentials: Credentials, *, realm: str, nonce: str) -> Proof:
    """Return whether the request's digest answers the challenge of this realm and nonce with the credentials."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    given = {name.lower(): quoted or plain for name, quoted, plain in _DIGEST_PART.findall(rest)}
    if scheme.lower() != "digest" or (given.get("realm"), given.get("nonce")) != (realm, nonce):
        return Proof.NONE
    if not hmac.compare_digest(given.get("username", "").encode(), credentials.user.encode()):
        return Proof.WRONG
    account = _md5(f"{credentials.user}:{realm}:{credentials.password}")
    asked = _md5(f"{request.method}:{given.get('uri', '')}")
    is_right = hmac.compare_digest(given.get("response", "").encode(), _md5(f"{account}:{nonce}:{asked}").encode())
    return Proof.RIGHT if is_right else Proof.WRONG


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()  # RTSP's digest authentication requires MD5


def _pair(value: str, *, most: int) -> tuple[int, int] | None:
    first, _, second = value.partition("-")
    low, high = number(first), number(second or first)
    return None if low is None or high is None or max(low, high) > most else (low, high)


def number(text: str) -> int | None:
    """Return the number that a header gives, None for anything but one to five plain digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None
