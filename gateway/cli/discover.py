"""`edge-gateway discover`: a search for ports, units and cameras that no site file has yet."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from drivers.modbus.frames import Framing
from gateway.cli.client import RunningGatewayClient
from gateway.cli.line_alone import addresses, run_on_line, scan, spec_at
from gateway.cli.running_lines import asked_there
from gateway.cli.running_lines import scan as scan_running
from gateway.cli.site_fragment import Findings, FoundCamera, FoundLine, FoundUnit, fragment
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url
from gateway.domain.errors import CommandRefused
from gateway.web.status.line_answers import LineShown

_CAMERA_KINDS = ("axis-video", "rtsp", "onvif", "psia")
_TIMEOUT = 0.15
BY_ID = Path("/dev/serial/by-id")


class Kind(StrEnum):
    """A way of finding devices."""

    SERIAL = "serial"
    MODBUS = "modbus"
    ONVIF = "onvif"
    MDNS = "mdns"


def discover(
    kinds: Annotated[
        list[Kind] | None, typer.Argument(metavar="[KIND]...", help="serial, modbus, onvif, mdns; all if left out.")
    ] = None,
    *,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="LINE", help="Look for Modbus units on serial:/dev/… or tcp://host:port."),
    ] = None,
    units: Annotated[str, typer.Option(help="Modbus addresses to ask, such as 1-32.")] = "1-32",
    baud: Annotated[int, typer.Option(min=300, max=921_600, help="Bits per second of serial lines.")] = 9600,
    framing: Annotated[Literal["rtu", "tcp"], typer.Option(help="Use tcp for devices that speak Modbus TCP.")] = "rtu",
    seconds: Annotated[float, typer.Option(min=0.2, max=60, help="How long to wait for answers of the network.")] = 3.0,
    interface: Annotated[
        list[str] | None,
        typer.Option("--interface", metavar="ADDRESS", help="Ask on the interface with this address; all if left out."),
    ] = None,
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Find serial ports, Modbus units, cameras and what mDNS announces, and print them as part of a site file.

    A line of the running gateway is scanned in its idle turns. Nothing is changed anywhere. Put the printed part into
    the site file, correct ids, names and profiles, and run `edge-gateway check`.

    Example: edge-gateway discover --on serial:/dev/serial/by-id/usb-FTDI-if00-port0 --units 1-16
    """
    wanted = frozenset(kinds or Kind)
    numbers = addresses(units, lowest=1, highest=247, option="--units")
    lines = [
        *(
            units_on(one, numbers, baud=baud, framing=framing, data=data, url=url)
            for one in on or ()
            if Kind.MODBUS in wanted
        ),
        *(found_ports(on or ()) if Kind.SERIAL in wanted else ()),
    ]
    cameras, others = asyncio.run(ask_network(wanted, interface, seconds))
    found = Findings(tuple(lines), tuple(cameras), tuple(others))
    if as_json:
        typer.echo(json.dumps({**asdict(found), "fragment": fragment(found)}, indent=2, ensure_ascii=False))
        return
    for line in found.lines:
        typer.echo(f"# {line.url}: {line.note or f'{len(line.units)} units'}")
        for unit in line.units:
            known = f", {', '.join(unit.devices)} of the site" if unit.devices else ""
            typer.echo(f"#   unit {unit.unit}: {unit.identity or unit.answer}{known}")
    for other in found.others:
        typer.echo(f"# {other}")
    typer.echo(fragment(found) or "# nothing was found")


def found_ports(scanned: list[str] | tuple[()]) -> list[FoundLine]:
    """Return the serial ports of this machine, except those in `scanned`."""
    known = set(scanned)
    ports = [FoundLine(f"serial:{port.path}", note=f"is {port.device}") for port in serial_ports()]
    return [line for line in ports if line.url not in known]


def units_on(line: str, numbers: list[int], *, baud: int, framing: Framing, data: Path, url: str) -> FoundLine:
    """Scan a line for units: through the running gateway if it has the line, else directly.

    A fault of the line is returned as the line's `note`.
    """
    found: list[FoundLine] = []

    def ask(gateway: RunningGatewayClient, known: LineShown) -> None:
        done = scan_running(gateway, known.name, first=min(numbers), last=max(numbers), through_converter=False)
        units = tuple(FoundUnit(one.unit, one.answer, one.identity, one.devices) for one in done.units)
        note = f"line {known.name} of the running gateway: {done.ended}"
        found.append(FoundLine(known.url, known.framing, known.baud, units, note, site_link=known.name))

    try:
        if not asked_there(line, ask, data=data, url=url, force=False):
            spec = spec_at(line, baud=baud, parity="none", stop_bits=1, force=False)
            quiet = Console(stderr=True)
            seen = run_on_line(scan([spec], numbers, framing=framing, timeout=_TIMEOUT, console=quiet, frames=False))
            units = tuple(FoundUnit(one.unit, one.words) for _, one in seen)
            found.append(FoundLine(line, framing, baud, units))
    except CommandRefused as error:
        found.append(FoundLine(line, framing, baud, note=str(error)))
    return found[0]


async def ask_network(
    kinds: frozenset[Kind], interfaces: list[str] | None, seconds: float
) -> tuple[list[FoundCamera], list[str]]:
    """Search the network by ONVIF and mDNS together for `seconds`; return cameras, and descriptions of other services.

    `interfaces` are the addresses of the interfaces to use; None for all.
    """
    from drivers.discovery import announced, ipv4_addresses, onvif_cameras  # noqa: PLC0415  # help answers faster

    at = interfaces or list(ipv4_addresses())
    cameras: dict[str, FoundCamera] = {}
    others: list[str] = []
    probed, services = await asyncio.gather(
        onvif_cameras(at if Kind.ONVIF in kinds else (), seconds=seconds),
        announced(at if Kind.MDNS in kinds else (), seconds=seconds),
    )
    for one in probed:
        name = " ".join(dict.fromkeys(word for word in (one.name, one.hardware) if word))
        cameras[one.address] = FoundCamera(one.address, name, f"ONVIF at {one.service}")
    for service in services:
        others.append(f"mDNS: {service.name} ({service.kind}) at {service.address}:{service.port}")
        if service.kind in _CAMERA_KINDS and service.address not in cameras:
            cameras[service.address] = FoundCamera(service.address, service.name, f"mDNS as {service.kind}")
    return list(cameras.values()), others


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A serial port: its lasting name, and the device file that it is at present."""

    path: str
    device: str


def serial_ports(folder: Path = BY_ID) -> tuple[SerialPort, ...]:
    """Return the ports of USB adapters, sorted by name; none when there are no adapters."""
    try:
        names = sorted(folder.iterdir())
    except OSError:  # without an adapter the system does not make the folder
        return ()
    return tuple(SerialPort(str(name), str(name.resolve())) for name in names)
