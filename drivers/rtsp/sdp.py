"""Parsing of session descriptions (SDP, RFC 8866). Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding that a payload type stands for. `clock` is the rate of its RTP clock."""

    name: str
    """The encoding's name in capitals, e.g. `H264`."""
    clock: int
    parameters: Mapping[str, str] = field(default_factory=dict)

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


def parse_description(body: bytes, *, base: str) -> list[Media]:
    """Parse the media of a session description.

    Args:
        body: the session description.
        base: the URL to which relative control URLs are appended.
    """
    media: list[Media] = []
    kind, control, payload_types = "", "", list[int]()
    maps: dict[int, tuple[str, int]] = {}
    formats: dict[int, dict[str, str]] = {}

    def finish() -> None:
        if kind:
            encodings = {
                number: Encoding(*maps.get(number, ("PCMA" if number == 8 else "PCMU", 8000)), formats.get(number, {}))
                for number in payload_types
                if number in maps or number in (0, 8)
            }
            media.append(Media(kind=kind, control=_control(base, control), encodings=encodings))

    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("m="):
            finish()
            fields = line[2:].split()
            kind, control = fields[0] if fields else "", ""
            payload_types = [int(number) for number in fields[3:] if number.isdecimal()]
            maps, formats = {}, {}
        elif line.startswith("a=control:"):
            control = line[10:].strip() if kind else ""
        elif line.startswith("a=rtpmap:"):
            number, _, encoding = line[9:].partition(" ")
            name, _, rest = encoding.strip().partition("/")
            clock = rest.partition("/")[0]
            if number.isdecimal() and clock.isdecimal() and int(clock):
                maps[int(number)] = (name.upper(), int(clock))
        elif line.startswith("a=fmtp:"):
            number, _, parameters = line[7:].partition(" ")
            if number.isdecimal():
                pairs = (part.partition("=") for part in parameters.split(";"))
                formats[int(number)] = {name.strip().lower(): value.strip() for name, _, value in pairs}
    finish()
    return media


def _control(base: str, control: str) -> str:
    if not control or control == "*":
        return base
    if control.lower().startswith(("rtsp://", "rtsps://")):
        return control
    if control.startswith("/"):
        return urljoin(base.replace("rtsp", "http", 1), control).replace("http", "rtsp", 1)
    return f"{base.rstrip('/')}/{control}"
