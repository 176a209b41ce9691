"""A fault of a site file, and names for the records that it mentions by their zero-based places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

_GROUPS = (
    ("links", "link", "id"),
    ("devices", "device", "id"),
    ("areas", "area", "id"),
    ("schedules", "schedule", "id"),
    ("holidays", "holiday", "date"),
    ("lanes", "lane", "id"),
    ("cameras", "camera", "id"),
)
_RECORD = re.compile(r"\b(?:links|devices|areas|schedules|holidays|lanes|cameras)\[\d+\]")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class SiteFault:
    """A fault of a site file: its place, such as `lanes[1].gate` ("" for the whole file), and one sentence.

    `line`: the number of its line from 1, where the place does not tell it; else 0.
    """

    place: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


def names_in(raw: Mapping[str, object]) -> Mapping[str, str]:
    """Map the places of a file's records to names: "device 101" for `devices[0]`. Records without an id are omitted."""
    names: dict[str, str] = {}
    for group, noun, key in _GROUPS:
        rows = raw.get(group)
        for index, row in enumerate(rows if isinstance(rows, list) else ()):
            name = row.get(key) if isinstance(row, dict) else None
            shown = "" if name is None or isinstance(name, dict | list) else str(name)
            if shown and shown.isprintable() and len(shown) <= _LONGEST:
                names[f"{group}[{index}]"] = f"{noun} {shown}"
    return names


def name_of(place: str, names: Mapping[str, str]) -> str:
    """Return the name of the record at a place, "" for none."""
    found = _RECORD.match(place)
    return names.get(found.group(), "") if found else ""


def moved(fault: SiteFault, places: Mapping[str, str]) -> SiteFault:
    """Return a fault at another place if its own, or the one that it is in, has another in `places`."""
    for place, other in places.items():
        if fault.place == place or fault.place.startswith(f"{place}."):
            return replace(fault, place=other + fault.place.removeprefix(place))
    return fault


def with_names(fault: SiteFault, names: Mapping[str, str]) -> SiteFault:
    """Return a fault for people, with the names of the records that it mentions."""
    name = name_of(fault.place, names)
    place = f"{fault.place} ({name})" if name else fault.place
    return SiteFault(
        place, _RECORD.sub(lambda other: names.get(other.group(), other.group()), fault.message), fault.line
    )
