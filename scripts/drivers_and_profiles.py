"""Write `docs/drivers.md`: every driver, and every profile that comes along, with its terminals.

Run it as `python scripts/drivers_and_profiles.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drivers.kinds import BUILT_IN
from gateway.cli.drivers import driver_row, profile_files, profile_row

PAGE = Path(__file__).resolve().parents[1] / "docs" / "drivers.md"
_HEAD = """# Drivers and profiles

A driver speaks with one family of devices; a profile tells it what a certain model has at which address. This page is
made from the program's own models and profiles by `make docs`; `edge-gateway drivers` lists the same. See
[Device profiles](profiles.md) to write your own, and [Development](development.md#add-a-driver) to add a driver.
Packages of others may bring more drivers; `edge-gateway drivers` lists those that are installed.

## Drivers

`driver` of a device in the site file takes one of these. Each name leads to the keys that it takes.

| driver | what it is for |
|---|---|
"""
_PROFILES = """
## Profiles

`profile` of a device takes one of these. Addresses are those of the profile's file, and count from its `address_base`:
0 unless it says 1.
"""


SERIAL = "serial-line"
"""Family of profiles whose inputs and commands are places in frames, not addresses."""


def page() -> str:
    """Return the page as it should be."""
    drivers = "".join(_driver(*driver_row(section)) for section in BUILT_IN)
    return _HEAD + drivers + _PROFILES + "".join(_profile(name, path) for name, path in profile_files(None).items())


def _driver(name: str, purpose: str) -> str:
    return f"| [`{name}`](site-file.md#devices-driver--{name}) | {purpose} |\n"


def _profile(name: str, path: Path) -> str:
    device, line, commands, points, besides, unproven = profile_row(path)
    text = path.read_text("utf-8")
    is_modbus = line != SERIAL
    facts = [f"{device}, {line}.", _remark(text), f"It has: {besides}." if besides and is_modbus else ""]
    parts = [f"\n### {name}\n", " ".join(filter(None, facts)) + "\n"]
    if unproven:
        parts.append(f"**Not proven on a device:** {unproven}.\n")
    if not is_modbus:
        named = (("Commands", commands), ("Inputs", points))
        parts.append(" ".join(f"{kind}: {names}." for kind, names in named if names) + "\n")
    elif rows := "".join(_rows(tomllib.loads(text))):
        parts.append(f"| | name | where |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _remark(text: str) -> str:
    """Return the comment that a profile begins with."""
    found = re.match(r"(?:#.*\n)+", text)
    return " ".join(line.lstrip("# ") for line in found.group().splitlines()) if found else ""


def _rows(raw: dict[str, Any]) -> Iterator[str]:
    for kind, table in (("command", "commands"), ("input", "points")):
        for name, place in raw.get(table, {}).items():
            yield f"| {kind} | `{name}` | {_place(place)} |\n"


def _place(place: dict[str, Any]) -> str:
    """Return in words where a command or an input is."""
    words = [str(place.get("write", place.get("table"))).replace("_", " "), str(place["address"])]
    if "mask" in place:
        words.append(f"mask {place['mask']:#06x}")
    if place.get("inverted"):
        words.append("(inverted)")
    return " ".join(words)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
