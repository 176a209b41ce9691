"""The part of a site file that describes found lines, units and cameras. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_FIRST_DEVICE, _FIRST_CAMERA = 101, 201
_LONGEST_NAME = 60
_PATHS = (
    ("axis", "/axis-media/media.amp"),
    ("hik", "/Streaming/Channels/101"),
    ("dahua", "/cam/realmonitor?channel=1&subtype=0"),
)
"""The usual path of the RTSP stream, by a word in the camera's name or model."""


@dataclass(frozen=True, slots=True)
class FoundUnit:
    """A Modbus unit that answered; `devices` are the names of the site's devices at this unit, empty for a new unit."""

    unit: int
    answer: str
    identity: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line, and the units that were found on it, which answered with this `framing` and `baud`.

    `site_link` is the id of the link that the site already has for the line; "" for a new line.
    """

    url: str
    framing: str = "rtu"
    baud: int = 9600
    units: tuple[FoundUnit, ...] = ()
    note: str = ""
    site_link: str = ""


@dataclass(frozen=True, slots=True)
class FoundCamera:
    """A camera; `how` says in words how it was found."""

    address: str
    name: str
    how: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of a search: lines, cameras, and descriptions of other services."""

    lines: tuple[FoundLine, ...] = ()
    cameras: tuple[FoundCamera, ...] = ()
    others: tuple[str, ...] = field(default=())


def fragment(found: Findings) -> str:
    """Return a part of a site file as TOML: new links, new devices, and cameras; "" for nothing."""
    return "\n".join((*_links(found.lines), *_cameras(found.cameras)))


def _links(lines: Iterable[FoundLine]) -> Iterator[str]:
    number = _FIRST_DEVICE
    names: set[str] = set()
    for line in lines:
        name = line.site_link or _slug(line.url, names)
        if not line.site_link:
            yield from ("[[links]]", f'id = "{name}"', f"url = {_text(line.url)}")
            if line.url.startswith("serial:"):
                yield f"baud = {line.baud}"
            yield ""
        for unit in line.units:
            if not unit.devices:
                yield from _device(number, name, line, unit)
                number += 1


def _device(number: int, link: str, line: FoundLine, unit: FoundUnit) -> Iterator[str]:
    yield f"# unit {unit.unit} {_printable(unit.identity or f'answers: {unit.answer}')}"
    yield "[[devices]]"
    yield f"id = {number}  # the one that central has for it"
    yield f"name = {_text(_name(unit.identity) or f'Unit {unit.unit} on {link}')}"
    yield 'driver = "modbus-io"  # modbus-gate for a barrier'
    yield f'link = "{link}"'
    yield 'profile = "inputs-8"  # choose: edge-gateway drivers'
    yield f"unit = {unit.unit}"
    yield f'framing = "{line.framing}"'
    yield ""


def _cameras(cameras: Iterable[FoundCamera]) -> Iterator[str]:
    for number, camera in enumerate(cameras, start=_FIRST_CAMERA):
        yield f"# found by {camera.how}; try its stream before"
        yield "[[cameras]]"
        yield f"id = {number}  # the one that central has for it"
        yield f"name = {_text(_name(camera.name) or camera.address)}"
        yield f"url = {_text(f'rtsp://{camera.address}{_path(camera.name)}')}"
        yield '# username = "gateway"'
        yield '# password = "camera"  # the name of a secret'
        yield ""


def _path(name: str) -> str:
    return next((path for word, path in _PATHS if word in name.lower()), "/")


def _slug(url: str, taken: set[str]) -> str:
    """Make a link's id from its address, different from those in `taken`, and add it to them."""
    place = url.partition(":")[2].removeprefix("//").rpartition("/")[2]
    slug = re.sub(r"[^a-z0-9]+", "-", place.lower()).strip("-")[:40].strip("-") or "line"
    slug = slug if slug[0].isalpha() else f"line-{slug}"
    name = next(name for count in range(1, 1000) if (name := slug if count == 1 else f"{slug}-{count}") not in taken)
    taken.add(name)
    return name


def _name(value: str) -> str:
    return _printable(value)[:_LONGEST_NAME].strip()


def _text(value: str) -> str:
    """Return a TOML string. TOML has all the escapes of JSON."""
    return json.dumps(_printable(value), ensure_ascii=False)


def _printable(value: str) -> str:
    return "".join(one for one in value if one.isprintable())
