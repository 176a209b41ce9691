"""Parsing of session descriptions (SDP, RFC 8866). Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin

_CONTROL = "a=control:"
_NUMBER = re.compile(r"[0-9]{1,9}")
_STATIC = {0: "PCMU", 8: "PCMA"}
_DIRECTIONS = frozenset({"sendonly", "recvonly", "sendrecv", "inactive"})


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding that a payload type stands for. `clock` is the rate of its RTP clock."""

    name: str
    """The encoding's name in capitals, e.g. `H264`."""
    clock: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    channels: int = 1
    """The channels of a sound, which follow the clock in `a=rtpmap` (RFC 8866, 6.6)."""

    def sets(self, name: str) -> list[bytes]:
        """Return the NAL units that a parameter holds in Base64; invalid ones are left out."""
        units = []
        for part in self.parameters.get(name, "").split(","):
            try:
                unit = base64.b64decode(part.strip() + "=" * (-len(part.strip()) % 4), validate=True)
            except ValueError:
                continue
            if unit:
                units.append(unit.removeprefix(b"\x00").removeprefix(b"\x00\x00\x01"))
        return units


@dataclass(frozen=True, slots=True)
class Media:
    """One medium (`m=`) of a session description. `kind` is `video`, `audio` or another word of SDP."""

    kind: str
    control: str
    """The absolute URL for SETUP."""
    encodings: Mapping[int, Encoding]
    direction: str = ""
    """`sendonly`, `recvonly`, `sendrecv` or `inactive`, of the medium or of the whole session; "" when not given."""


def session_control(body: bytes, *, base: str) -> str:
    """Return the URL of the whole session, to which those of its media are relative (RFC 2326, C.1.1).

    It is that of the session's own `a=control` where that is absolute, else `base`.
    """
    for line in _lines(body):
        if line.startswith("m="):
            break
        if line.startswith(_CONTROL) and _is_absolute(url := line.removeprefix(_CONTROL).strip()):
            return url
    return base


def parse_description(body: bytes, *, base: str) -> list[Media]:
    """Parse the media of a session description.

    Args:
        body: the session description.
        base: the URL to which relative control URLs are appended.
    """
    media: list[Media] = []
    kind, control, payload_types = "", "", list[int]()
    of_session = direction = ""
    maps: dict[int, tuple[str, int, int]] = {}
    formats: dict[int, dict[str, str]] = {}

    def finish() -> None:
        if kind:
            encodings = {
                number: _encoding(number, maps, formats) for number in payload_types if _is_known(number, maps)
            }
            media.append(
                Media(
                    kind=kind, control=_control(base, control), encodings=encodings, direction=direction or of_session
                )
            )

    for line in _lines(body):
        if line.startswith("m="):
            finish()
            fields = line[2:].split()
            kind, control, direction = fields[0] if fields else "", "", ""
            payload_types = [int(number) for number in fields[3:] if _NUMBER.fullmatch(number)]
            maps, formats = {}, {}
        elif line.startswith(_CONTROL):
            control = line.removeprefix(_CONTROL).strip() if kind else ""
        elif line.startswith("a=rtpmap:"):
            number, _, encoding = line[9:].strip().partition(" ")
            name, clock, channels, *_ = [*(part.strip() for part in encoding.split("/")), "", ""]
            if _NUMBER.fullmatch(number) and _NUMBER.fullmatch(clock) and int(clock):
                count = int(channels) if _NUMBER.fullmatch(channels) and int(channels) else 1
                maps[int(number)] = (name.upper(), int(clock), count)
        elif line.startswith("a=fmtp:"):
            number, _, parameters = line[7:].strip().partition(" ")
            if _NUMBER.fullmatch(number):
                pairs = (part.partition("=") for part in parameters.split(";"))
                formats[int(number)] = {name.strip().lower(): value.strip() for name, _, value in pairs}
        elif line.strip().removeprefix("a=") in _DIRECTIONS:
            if kind:
                direction = line.strip()[2:]
            else:
                of_session = line.strip()[2:]
    finish()
    return media


def _lines(body: bytes) -> list[str]:
    return body.decode("utf-8", "replace").splitlines()


def _is_known(number: int, maps: Mapping[int, object]) -> bool:
    return number in maps or number in _STATIC


def _encoding(
    number: int, maps: Mapping[int, tuple[str, int, int]], formats: Mapping[int, Mapping[str, str]]
) -> Encoding:
    name, clock, channels = maps.get(number) or (_STATIC[number], 8000, 1)
    return Encoding(name, clock, formats.get(number, {}), channels)


def _control(base: str, control: str) -> str:
    if not control or control == "*":
        return base
    if _is_absolute(control):
        return control
    if control.startswith("/"):
        return urljoin(base.replace("rtsp", "http", 1), control).replace("http", "rtsp", 1)
    return f"{base.rstrip('/')}/{control}"


def _is_absolute(url: str) -> bool:
    return url.lower().startswith(("rtsp://", "rtsps://"))
