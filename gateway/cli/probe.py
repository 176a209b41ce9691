"""`edge-gateway probe`: tests a port, a bus or one unit; a running gateway does that for its own lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic_core import to_json
from rich.console import Console
from rich.table import Table

from drivers.device import Device
from drivers.modbus.profile import UnitProfile
from drivers.modbus.section import ModbusDevice
from drivers.modbus.survey import AnsweringUnit, UnitValues
from drivers.osdp.section import OsdpReaderDevice
from drivers.serial_line.section import SerialReaderDevice
from gateway.cli.client import RunningGatewayClient
from gateway.cli.line_alone import LineTrace, addresses, listen, look, profile_of, run_on_line, scan, spec_at, spec_of
from gateway.cli.printing import print_answers
from gateway.cli.running_lines import asked_there, device_values, follow, lines_of, must_have, show
from gateway.cli.running_lines import scan as scan_running
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import CommandRefused, ConfigError
from gateway.lines.scans import Scan
from gateway.site import Site, load
from gateway.web.status.line_answers import LineShown, UnitShown

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Test a line: see its units and frames, scan it, listen to a port, or read one device.

    A running gateway is asked for its own lines, and works on meanwhile; other lines are opened here. Sends no command
    unless you ask for one.

    Example: edge-gateway probe bus serial:/dev/ttyUSB0 --baud 9600,38400 --units 1-32
    """,
)
At = Annotated[
    str,
    typer.Argument(
        metavar="LINE", help="serial:/dev/… or tcp://host:port, or a line of the running gateway.", show_default=False
    ),
]
Parity = Annotated[Literal["none", "even", "odd"], typer.Option(help="Parity of the line.")]
StopBits = Annotated[int, typer.Option(min=1, max=2, help="Stop bits of the line.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Open the line here even if another program has it open. Answers may get lost."),
]


def why_not_probed(device: Device, site: Site) -> str:
    """Return a sentence on what to do instead with a device that does not speak Modbus."""
    link = next(link for link in site.links if link.id == device.link)
    words = f"device {device.id} ({device.name}) is a {device.driver} and speaks no Modbus"
    line = f" --baud {link.baud} --parity {link.parity} --stop-bits {link.stop_bits}" if link.kind == "serial" else ""
    listen = f"edge-gateway probe port {link.url}{line}"
    elsewhere = "the status page and the log tell whether it answers"
    if isinstance(device, SerialReaderDevice):
        return f"{words}; see what it sends with: {listen}"
    if isinstance(device, OsdpReaderDevice):
        return f"{words}; what it says is encrypted: {elsewhere}"
    if link.kind in {"serial", "tcp"}:
        return f"{words}; {elsewhere}, and what it sends unasked is seen with: {listen}"
    return f"{words}; it is on the network at {link.url}: {elsewhere}"


@app.command("lines")
def lines(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show the lines of the running gateway: how fast and how reliably each unit answers.

    The exit status is 1 when a line is down or a unit fails.

    Example: edge-gateway probe lines
    """
    with connected(data, url) as gateway:
        found = lines_of(gateway)
    if as_json:
        print_answers(found)
    else:
        for line in found:
            typer.echo(f"{line.name} ({line.url}): {line.verdict}")
            for unit in line.units:
                typer.echo(f"    {_unit_words(unit)}")
    if any(line.down or any(unit.failing for unit in line.units) for line in found):
        raise typer.Exit(1)


@app.command("follow")
def follow_frames(
    line: At,
    *,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=86_400, help="How long; until Ctrl-C if left out.")
    ] = None,
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Show the frames of a line of the running gateway in words, as they come. Sends nothing.

    Example: edge-gateway probe follow gates --seconds 60
    """
    with connected(data, url) as gateway:
        for frame in follow(gateway, must_have(gateway, line).name, seconds=seconds):
            if as_json:
                typer.echo(to_json(frame))
            else:
                show(frame)


@app.command("port")
def port(
    line: At,
    *,
    baud: Annotated[int, typer.Option(min=300, max=921_600, help="Bits per second.")] = 9600,
    parity: Parity = "none",
    stop_bits: StopBits = 1,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long to listen.")] = 10.0,
    force: Force = False,
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Listen to a port and show every byte, in hexadecimal and as text. Sends nothing.

    Of a line that the running gateway polls its frames are shown in words instead.

    Example: edge-gateway probe port serial:/dev/ttyUSB0 --baud 9600 --seconds 30
    """

    def ask(gateway: RunningGatewayClient, known: LineShown) -> None:
        for frame in follow(gateway, known.name, seconds=seconds):
            show(frame)

    if not asked_there(line, ask, data=data, url=url, force=force):
        spec = spec_at(line, baud=baud, parity=parity, stop_bits=stop_bits, force=force)
        run_on_line(listen(spec, LineTrace(console=Console(), characters=True), seconds))


@app.command("bus")
def bus(
    line: At,
    *,
    baud: Annotated[str, typer.Option(help="One or more speeds, such as 9600,38400. Serial ports only.")] = "9600",
    units: Annotated[str, typer.Option(help="Addresses to ask, such as 1-32 or 1,2,10.")] = "1-32",
    parity: Parity = "none",
    stop_bits: StopBits = 1,
    framing: Annotated[Literal["rtu", "tcp"], typer.Option(help="Use tcp for devices that speak Modbus TCP.")] = "rtu",
    timeout: Annotated[float, typer.Option(min=0.02, max=2.0, help="Seconds for each answer.")] = 0.15,
    frames: Annotated[bool, typer.Option("--frames", help="Show the raw bytes too.")] = False,
    through_converter: Annotated[
        bool,
        typer.Option(
            "--through-converter",
            help="Scan a Modbus TCP line of the running gateway, though its units may be delayed by it.",
        ),
    ] = False,
    force: Force = False,
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Scan a bus: ask every address at every speed for its first register. A refusal counts as an answer.

    A line of the running gateway is scanned at its own speed, in turns in which nothing else waits. Units that answer
    later than --timeout are listed too, where the line is opened here.

    Example: edge-gateway probe bus serial:/dev/ttyUSB0 --baud 9600,19200,38400 --parity even --units 1-16
    """
    wanted = addresses(units, lowest=1, highest=247, option="--units")
    speeds = addresses(baud, lowest=300, highest=921_600, option="--baud")

    def ask(gateway: RunningGatewayClient, known: LineShown) -> None:
        typer.echo(f"line {known.name} is the running gateway's: it asks in its idle turns", err=True)
        done = scan_running(
            gateway, known.name, first=min(wanted), last=max(wanted), through_converter=through_converter
        )
        _show_scan(done, as_json=as_json)

    if asked_there(line, ask, data=data, url=url, force=force):
        return
    if not line.startswith("serial:"):
        speeds = speeds[:1]
    specs = [spec_at(line, baud=speed, parity=parity, stop_bits=stop_bits, force=force) for speed in speeds]
    console = Console(stderr=as_json)
    found = run_on_line(scan(specs, wanted, framing=framing, timeout=timeout, console=console, frames=frames))
    if as_json:
        typer.echo(json.dumps([{"baud": speed, **asdict(answer)} for speed, answer in found], indent=2))
    else:
        console.print(_found_table(found, is_serial=specs[0].is_serial))
    if not found:
        raise typer.Exit(1)


@app.command("unit")
def unit(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.", show_default=False)],
    device: Annotated[
        int, typer.Argument(metavar="DEVICE", help="The device's id in the site file.", show_default=False)
    ],
    *,
    send: Annotated[
        Literal["open", "stop"] | None,
        typer.Option(help="Send this command first. The gate moves! Only the lane may close it."),
    ] = None,
    force: Force = False,
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Read one Modbus device of a site file and show its state in words, with the raw bytes.

    A running gateway reads it in idle turns of its line.

    Example: edge-gateway probe unit /etc/edge-gateway/site.toml 101
    """
    read = load(site)
    chosen = next((found for found in read.devices if found.id == device), None)
    if chosen is None:
        raise ConfigError(f"{site} has no device {device}")
    if not isinstance(chosen, ModbusDevice):
        raise ConfigError(why_not_probed(chosen, read))
    link = next(link for link in read.links if link.id == chosen.link)
    profile = profile_of(read, site, chosen)

    def ask(gateway: RunningGatewayClient, _: LineShown) -> None:
        if send is not None:
            raise CommandRefused(
                f"the running gateway has line {link.id}: its lane commands the gate, with edge-gateway lanes {send}"
            )
        _show_state(chosen.name, profile, device_values(gateway, device), as_json=as_json)

    if asked_there(link.url, ask, data=data, url=url, force=force):
        return
    trace = LineTrace(console=Console(stderr=as_json))
    state = run_on_line(look(spec_of(link, force=force), chosen, profile, send=send, trace=trace))
    _show_state(chosen.name, profile, state, as_json=as_json)


def _show_scan(done: Scan, *, as_json: bool) -> None:
    if as_json:
        typer.echo(to_json(done, indent=2))
    else:
        table = Table("unit", "device", "answer", "it says it is")
        for one in done.units:
            answer = one.answer if one.is_clear else f"garbled: {one.answer} (two of one address?)"
            table.add_row(str(one.unit), ", ".join(one.devices) or "new", answer, one.identity)
        Console().print(table)
        typer.echo(f"{done.asked} of {done.total} addresses: {done.ended or 'still under way'}")
        if done.unasked:
            typer.echo(f"not asked, for want of an idle turn: {', '.join(map(str, done.unasked))}")
    if not done.units:
        raise typer.Exit(1)


def _found_table(found: Iterable[tuple[int, AnsweringUnit]], *, is_serial: bool) -> Table:
    table = Table("unit", *(("baud",) if is_serial else ()), "answer")
    for speed, answer in found:
        words = answer.words if answer.is_clear else f"garbled: {answer.words} (another speed, or two of one address?)"
        table.add_row(str(answer.unit), *((str(speed),) if is_serial else ()), words)
    if not table.row_count:
        table.add_row("none", *(("",) if is_serial else ()), "nobody answered")
    return table


def _show_state(name: str, profile: UnitProfile, state: UnitValues, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(state), indent=2, ensure_ascii=False))
    else:
        Console().print(_state_table(name, profile, state))


def _unit_words(unit: UnitShown) -> str:
    whom = ", ".join(unit.devices) or "no device"
    reply = "no answer yet" if unit.reply is None else f"{unit.reply:g} ms of {unit.allowed:g} ms allowed"
    failed = "".join(f", {count} {kind}" for kind, count in unit.failed.items() if count)
    counts = f"{sum(unit.reply_times)} answers{failed} in the last hour"
    return f"unit {unit.unit} ({whom}): {reply}, {counts}. {unit.verdict}".rstrip()


def _state_table(name: str, profile: UnitProfile, state: UnitValues) -> Table:
    table = Table("what", "says", title=f"{name} ({profile.name})", title_justify="left")
    if state.position:
        table.add_row("position", state.position)
    for point, words in state.points.items():
        table.add_row(point, words)
    for reading, words in state.readings.items():
        table.add_row(reading, words)
    return table
