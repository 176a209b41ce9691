"""`edge-gateway drivers`: the drivers, and the device profiles with their commands and points."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from drivers.device import Device
from drivers.kinds import BUILT_IN, UnusableDriver, driver_name, outside
from drivers.modbus.profile import GateProfile, PulseBy, UnitProfile, load_unit_profile
from drivers.profile_file import SHIPPED_PROFILES, ProfileError
from gateway.cli.printing import print_value
from gateway.cli.target import JsonWanted
from gateway.domain.errors import ConfigError


def drivers(
    profile: Annotated[
        str | None, typer.Argument(metavar="[PROFILE]", help="Show this profile in full.", show_default=False)
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--profiles", metavar="DIR", help="Include your own profiles.", show_default=False)
    ] = None,
    as_json: JsonWanted = False,
) -> None:
    """List the drivers and the device profiles, or show one profile.

    Example: edge-gateway drivers came-gard-ptx
    """
    paths = profile_files(folder)
    console = Console()
    if profile is not None:
        path = paths.get(profile)
        if path is None:
            raise ConfigError(f"no profile {profile!r}; there are {', '.join(sorted(paths))}")
        if as_json:
            print_value(tomllib.loads(path.read_text("utf-8")))
            return
        console.print(path.read_text("utf-8"), markup=False, highlight=False, soft_wrap=True)
        return
    if as_json:
        print_value(_as_value(paths))
        return
    console.print(_drivers_table())
    console.print(_profiles_table(paths))


def _as_value(paths: dict[str, Path]) -> JsonValue:
    columns = ("device", "line", "commands", "points", "besides", "unproven")
    known: list[JsonValue] = [{"driver": name, "purpose": purpose} for name, purpose in map(driver_row, BUILT_IN)]
    known += [{"driver": name, "purpose": purpose, "from": origin} for name, origin, purpose in outside_rows()]
    return {
        "drivers": known,
        "profiles": [
            {"profile": name, **dict(zip(columns, profile_row(path), strict=True))} for name, path in paths.items()
        ],
    }


def profile_files(folder: Path | None) -> dict[str, Path]:
    """Return the paths of profiles by name, sorted. A profile in `folder` replaces a shipped one of the same name."""
    folders = (*((folder,) if folder else ()), SHIPPED_PROFILES)
    found = [path for place in folders for path in sorted(place.glob("*.toml"))]
    return dict(sorted({path.stem: path for path in reversed(found)}.items()))


def _drivers_table() -> Table:
    table = Table("driver", "what it is for", title="driver = …", title_justify="left")
    for section in BUILT_IN:
        table.add_row(*driver_row(section))
    for name, origin, purpose in outside_rows():
        table.add_row(name, f"{purpose} ({origin})")
    return table


def driver_row(section: type[Device]) -> tuple[str, str]:
    """Return a driver's name, and the first line of its section's docstring, which says what it is for."""
    return driver_name(section), (section.__doc__ or "").split("\n", 1)[0].replace("`", "")


def outside_rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, distribution and purpose of each driver that another distribution brings, or why it is unusable."""
    for one in outside():
        try:
            yield one.name, one.origin, driver_row(one.section())[1]
        except UnusableDriver as error:
            yield one.name, one.origin, f"unusable: {error}"


def _profiles_table(paths: dict[str, Path]) -> Table:
    table = Table("profile", "device and line", "what it has", title="profile = …", title_justify="left")
    table.columns[0].no_wrap = True  # the name is copied to the site file
    for name, path in paths.items():
        device, line, commands, points, besides, unproven = profile_row(path)
        has = [f"commands {commands}" if commands else "", f"points {points}" if points else "", besides]
        table.add_row(
            name,
            "\n".join(part for part in (device, line) if part),
            "\n".join(part for part in (*has, f"unproven: {unproven}" if unproven else "") if part),
            end_section=True,
        )
    return table


def profile_row(path: Path) -> tuple[str, str, str, str, str, str]:
    """Return a profile's name, line, commands, points, further abilities, and unproven parts, each as text.

    For a faulty profile, the name is "faulty", and the fifth text is its first fault.
    """
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        if "family" in raw:  # profiles of other families than Modbus
            commands, points = (raw.get(key) for key in ("commands", "points"))
            names = [", ".join(part) if isinstance(part, dict) else "" for part in (commands, points)]
            name, family, kind, said = (str(raw.get(key, "")) for key in ("name", "family", "kind", "unproven"))
            return name, family, names[0], names[1], kind, said
        profile = load_unit_profile(path)
    except (ProfileError, OSError, tomllib.TOMLDecodeError) as error:
        fault = error.faults[0] if isinstance(error, ProfileError) else str(error)
        return "faulty", "", "", "", fault, ""
    points = ", ".join(profile.points)
    return profile.name, _line(profile), _commands(profile), points, _besides(profile), profile.unproven


def _line(profile: UnitProfile) -> str:
    line = profile.line
    if line.framing == "tcp":
        return "Modbus TCP"
    if line.baud is None:
        return "Modbus"
    return f"Modbus RTU {line.baud} 8{line.parity[0].upper()}{line.stop_bits}, unit {line.unit}"


def _commands(profile: UnitProfile) -> str:
    if not isinstance(profile, GateProfile):
        return ""
    commands = profile.commands
    named = (("open", commands.open), ("close", commands.close), ("stop", commands.stop))
    return ", ".join(name for name, command in named if command is not None)


def _besides(profile: UnitProfile) -> str:
    words = []
    if isinstance(profile, GateProfile):
        words.append("position" if profile.position is not None else "no position")
        if profile.commands.open.pulse_by is PulseBy.HOST:
            words.append("the gateway ends the pulse")
    if profile.prepare:
        words.append("its settings are written when it connects")
    if profile.heartbeat is not None:
        words.append("heartbeat")
    if profile.readings:
        words.append(f"{len(profile.readings)} readings")
    return ", ".join(words)
