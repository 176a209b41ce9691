"""The search for ports, units and cameras at a new site, with the code of `edge-gateway discover`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from drivers.system_messages import system_words
from gateway.cli.site_fragment import Found, FoundLine, fragment
from gateway.domain.errors import GatewayError

_SECONDS = 3.0
_UNITS = range(1, 33)
_BAUD = 9600


def search(*, data: Path, units: bool) -> str:
    """Find serial ports and cameras, and Modbus units if wanted; print them, and return a part of a site file for them.

    Only the search for units sends bytes to devices, to which a device with another protocol may react wrongly. A
    network or port that cannot be searched is reported and skipped.
    """
    from gateway.cli.discover import Kind, ask_network, found_ports, units_on  # noqa: PLC0415  # help is faster

    lines: list[FoundLine] = found_ports(())
    if units:
        lines = [units_on(line.url, [*_UNITS], baud=_BAUD, framing="rtu", data=data, url="") for line in lines]
    try:
        cameras, others = asyncio.run(ask_network(frozenset({Kind.ONVIF, Kind.MDNS}), None, _SECONDS))
    except (OSError, GatewayError) as error:
        typer.echo(f"the network was not searched: {system_words(error) if isinstance(error, OSError) else error}")
        cameras, others = [], []
    for line in lines:
        typer.echo(f"found {line.url}{''.join(f', unit {unit.unit}' for unit in line.units)}")
    for camera in cameras:
        typer.echo(f"found {camera.name or 'a camera'} at {camera.address}")
    return fragment(Found(tuple(lines), tuple(cameras), tuple(others)))
