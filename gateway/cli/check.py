"""`edge-gateway check`: judge a site file without starting anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.site import GateDevice, ModbusIoDevice, ReaderDevice, Site, doubtful, load, unproven


def check(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.", show_default=False)],
) -> None:
    """Check a site file and list every fault with its place. The exit status is 2 when there is one.

    Looks up the secrets and device profiles that the file names. Warns of likely slips, and notes parts of profiles
    that were never proven on a device. Connects to nothing.

    Example: edge-gateway check /etc/edge-gateway/site.toml
    """
    known = load(site)
    typer.echo(f"{site} is good: {summary(known)}")
    for sentence in doubtful(known, site):
        typer.echo(f"warning: {sentence}")
    for sentence in unproven(known, site):
        typer.echo(f"note: {sentence}")


def summary(site: Site) -> str:
    """Summarise a site in one line."""
    gates = sum(isinstance(device, GateDevice) for device in site.devices)
    readers = sum(isinstance(device, ReaderDevice) for device in site.devices)
    modules = sum(isinstance(device, ModbusIoDevice) for device in site.devices)
    parts = ", ".join(
        (
            _counted(len(site.lanes), "lane"),
            _counted(gates, "gate"),
            _counted(readers, "reader"),
            *((_counted(modules, "input module"),) if modules else ()),
            _counted(len(site.cameras), "camera"),
            _counted(len(site.links), "link"),
        )
    )
    above = f"central at {site.central.url}" if site.central else "no central service"
    doors = "" if site.api.accounts else "; the site file has no [[api.accounts]]: see edge-gateway users"
    return f"{site.site.name} with {parts}; {above}{doors}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
