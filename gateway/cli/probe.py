"""`edge-gateway probe`: look at a port, a bus or one unit, with the raw bytes shown."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction, Trace
from drivers.contract import DriverError, LinkError
from drivers.link import LinkSpec, open_link
from drivers.modbus.frames import Framing
from drivers.modbus.profile import Command, GateProfile, UnitProfile, load_unit_profile
from drivers.modbus.session import Session
from drivers.modbus.survey import Answered, UnitValues, ask_for_unit, line_up, read_unit
from drivers.modbus.traced_answers import LATE_SECONDS, AnswerTrace, TracedAnswer
from gateway.cli.line_trace import LineTrace
from gateway.cli.line_use import is_connected
from gateway.domain.errors import CommandRefused, ConfigError
from gateway.site import (
    Device,
    Link,
    ModbusDevice,
    OsdpReaderDevice,
    SerialGateDevice,
    SerialReaderDevice,
    SerialTagReaderDevice,
    Site,
    find_profile,
    load,
    profile_folders,
)

Result = TypeVar("Result")
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Test a line: listen to a port, scan a bus, or read one device. Shows the raw bytes.

    Sends no command unless you ask for one. Stop the gateway first: a line that it has open is refused.

    Example: edge-gateway probe bus serial:/dev/ttyUSB0 --baud 9600,38400 --units 1-32
    """,
)
Url = Annotated[str, typer.Argument(metavar="URL", help="serial:/dev/… or tcp://host:port", show_default=False)]
Parity = Annotated[Literal["none", "even", "odd"], typer.Option(help="Parity of the line.")]
StopBits = Annotated[int, typer.Option(min=1, max=2, help="Stop bits of the line.")]
Force = Annotated[
    bool, typer.Option("--force", help="Use the line even if another program has it open. Answers may get lost.")
]


def late(answer: TracedAnswer, timeout: float) -> Answered:
    """Describe, as a line of `probe bus`, a unit that answered late or unasked."""
    if answer.after is None:
        words = "heard though it was not asked: another master on the line, or an answer under a wrong address"
        return Answered(answer.unit, words, is_clear=True)
    wanted = math.ceil(answer.after * 12) / 10
    words = f"answers late, after {answer.after:.2f} s: more than --timeout {timeout:g}; try --timeout {wanted:g}"
    return Answered(answer.unit, words, is_clear=True)


def hint_of(traced: AnswerTrace, device: ModbusDevice, profile: UnitProfile) -> str:
    """Describe what arrived instead of the answer; "" for nothing."""
    answers = traced.answers()
    others = ", ".join(str(answer.unit) for answer in answers if answer.unit != device.unit)
    own = next((answer.after for answer in answers if answer.unit == device.unit), None)
    if own is not None and own > profile.reply_ms / 1000:
        return f"its answer came after {own:.2f} s, and profile {device.profile!r} waits {profile.reply_ms} ms"
    if others:
        return f"but unit {others} was heard: is {device.unit} the right address of device {device.id}?"
    return ""


def why_not_probed(device: Device, site: Site) -> str:
    """Describe what to do instead with a device that does not speak Modbus."""
    link = next(link for link in site.links if link.id == device.link)
    words = f"device {device.id} ({device.name}) is a {device.driver} and speaks no Modbus"
    line = f" --baud {link.baud} --parity {link.parity} --stop-bits {link.stop_bits}" if link.kind == "serial" else ""
    listen = f"edge-gateway probe port {link.url}{line}"
    elsewhere = "the status page and the log tell whether it answers"
    if isinstance(device, SerialReaderDevice):
        return f"{words}; see what it sends with: {listen}"
    if isinstance(device, SerialGateDevice | SerialTagReaderDevice):
        return f"{words}; {elsewhere}, and what it sends unasked is seen with: {listen}"
    if isinstance(device, OsdpReaderDevice):
        return f"{words}; what it says is encrypted: {elsewhere}"
    return f"{words}; it is on the network at {link.url}: {elsewhere}"


@app.command("port")
def port(
    url: Url,
    *,
    baud: Annotated[int, typer.Option(min=300, max=921_600, help="Bits per second.")] = 9600,
    parity: Parity = "none",
    stop_bits: StopBits = 1,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long to listen.")] = 10.0,
    force: Force = False,
) -> None:
    """Listen to a port and show every byte, in hexadecimal and as text. Sends nothing.

    Example: edge-gateway probe port serial:/dev/ttyUSB0 --baud 9600 --seconds 30
    """
    spec = _spec(url, baud=baud, parity=parity, stop_bits=stop_bits, force=force)
    console = Console()
    _run(_listen(spec, LineTrace(console=console, characters=True), seconds))


@app.command("bus")
def bus(
    url: Url,
    *,
    baud: Annotated[str, typer.Option(help="One or more speeds, such as 9600,38400. Serial ports only.")] = "9600",
    units: Annotated[str, typer.Option(help="Addresses to ask, such as 1-32 or 1,2,10.")] = "1-32",
    parity: Parity = "none",
    stop_bits: StopBits = 1,
    framing: Annotated[Literal["rtu", "tcp"], typer.Option(help="Use tcp for devices that speak Modbus TCP.")] = "rtu",
    timeout: Annotated[float, typer.Option(min=0.02, max=2.0, help="Seconds for each answer.")] = 0.15,
    frames: Annotated[bool, typer.Option("--frames", help="Show the raw bytes too.")] = False,
    force: Force = False,
) -> None:
    """Scan a bus: ask every address at every speed for its first register. A refusal counts as an answer.

    Units that answer later than --timeout are listed too.

    Example: edge-gateway probe bus serial:/dev/ttyUSB0 --baud 9600,19200,38400 --parity even --units 1-16
    """
    wanted = _numbers(units, lowest=1, highest=247, option="--units")
    speeds = _numbers(baud, lowest=300, highest=921_600, option="--baud")
    if not url.startswith("serial:"):
        speeds = speeds[:1]
    specs = [_spec(url, baud=speed, parity=parity, stop_bits=stop_bits, force=force) for speed in speeds]
    console = Console()
    found = _run(_scan(specs, wanted, framing=framing, timeout=timeout, console=console, frames=frames))
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
) -> None:
    """Read one Modbus device of a site file and show its state in words, with the raw bytes.

    Example: edge-gateway probe unit /etc/edge-gateway/site.toml 101
    """
    read = load(site)
    chosen = next((found for found in read.devices if found.id == device), None)
    if chosen is None:
        raise ConfigError(f"{site} has no device {device}")
    if not isinstance(chosen, ModbusDevice):
        raise ConfigError(why_not_probed(chosen, read))
    link = next(link for link in read.links if link.id == chosen.link)
    profile = _profile(read, site, chosen)
    spec = _spec_of(link, force=force)
    console = Console()
    state = _run(_look(spec, chosen, profile, send=send, trace=LineTrace(console=console)))
    console.print(_state_table(chosen.name, profile, state))


async def _listen(spec: LinkSpec, trace: LineTrace, seconds: float) -> None:
    connection = await open_link(spec)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    arrival = await connection.read()
                    trace(Direction.RECEIVED, arrival.data, arrival.at)
    finally:
        await connection.close()


async def _scan(
    specs: list[LinkSpec], units: list[int], *, framing: Framing, timeout: float, console: Console, frames: bool
) -> list[tuple[int, Answered]]:
    found: list[tuple[int, Answered]] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("asking", total=len(specs) * len(units))
        for spec in specs:
            traced = AnswerTrace(framing=framing)
            trace = _both(LineTrace(console=console), traced) if frames else traced
            line = Bus(name=spec.url, spec=spec, trace=trace, silent_limit=len(units) + 1)  # silence is to be expected

            async def ask_all(line: Bus = line, spec: LinkSpec = spec, traced: AnswerTrace = traced) -> None:
                clear = set()
                for number in units:
                    progress.update(task, description=f"unit {number} at {spec.baud}")
                    answer = await ask_for_unit(line, number, framing=framing, timeout=timeout)
                    if answer is not None:
                        clear.add(number)
                        found.append((spec.baud, answer))
                    progress.advance(task)
                if clear != set(units):
                    await asyncio.sleep(LATE_SECONDS)
                tardy = (late(answer, timeout) for answer in traced.answers() if answer.unit not in clear)
                found.extend((spec.baud, answer) for answer in tardy)

            await _beside(line, ask_all)
    return found


async def _look(
    spec: LinkSpec,
    device: ModbusDevice,
    profile: UnitProfile,
    *,
    send: Literal["open", "stop"] | None,
    trace: LineTrace,
) -> UnitValues:
    traced = AnswerTrace(framing=device.framing)
    line = Bus(name=device.link, spec=spec, trace=_both(trace, traced))
    session = Session(bus=line, unit=device.unit, framing=device.framing, timeout=profile.reply_ms / 1000)
    seen: list[UnitValues] = []

    async def ask() -> None:
        await line_up(line)
        try:
            if send is not None:
                await _send(session, profile, send)
            seen.append(await read_unit(session, profile))
        except LinkError as error:
            await asyncio.sleep(LATE_SECONDS)
            hint = hint_of(traced, device, profile)
            if not hint:
                raise
            raise LinkError(f"{error}; {hint}") from error

    await _beside(line, ask)
    return seen[0]


def _both(one: Trace, other: Trace) -> Trace:
    def trace(direction: Direction, data: bytes, at: float) -> None:
        one(direction, data, at)
        other(direction, data, at)

    return trace


async def _send(session: Session, profile: UnitProfile, name: Literal["open", "stop"]) -> None:
    command: Command | None = None
    if isinstance(profile, GateProfile):
        command = profile.commands.open if name == "open" else profile.commands.stop
    if command is None:
        raise CommandRefused(f"{profile.name} has no command to {name}")
    try:
        await session.write(profile.write_of(command), deadline=time.monotonic() + 2)
        await asyncio.sleep(command.pulse_seconds or 0.0)
    finally:
        if command.pulse_seconds is not None:
            await session.write(profile.release_of(command), deadline=time.monotonic() + 2)


async def _beside(line: Bus, body: Callable[[], Awaitable[None]]) -> None:
    """Run `body` while the line is served."""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(line.run())
        try:
            await body()
        finally:
            serving.cancel()


def _run(body: Coroutine[None, None, Result]) -> Result:
    """Run `body` to its end; report a fault of the line in one sentence."""
    try:
        return asyncio.run(body)
    except DriverError as error:
        raise CommandRefused(str(error)) from error
    except ExceptionGroup as group:
        first = _first(group)
        if isinstance(first, DriverError):
            raise CommandRefused(str(first)) from group
        raise


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _spec(url: str, *, baud: int, parity: Literal["none", "even", "odd"], stop_bits: int, force: bool) -> LinkSpec:
    try:
        link = Link(id="line", url=url, baud=baud, parity=parity, stop_bits=1 if stop_bits == 1 else 2)
    except ValueError as error:
        raise ConfigError(f"{url!r} must be serial:/dev/… or tcp://host:port") from error
    return _spec_of(link, force=force)


def _spec_of(link: Link, *, force: bool) -> LinkSpec:
    """Return the line's settings; refuse a line that another program uses."""
    if not force and is_connected(link.url):
        raise CommandRefused(
            f"{link.url} is open already on this machine, probably by the gateway: stop it, or use --force"
        )
    return LinkSpec(
        url=link.url,
        baud=link.baud,
        parity=link.parity,
        stop_bits=link.stop_bits,
        echoes=link.echoes,
        exclusive=not force,
    )


def _profile(site: Site, path: Path, device: ModbusDevice) -> UnitProfile:
    found = find_profile(device.profile, profile_folders(site, path))
    if found is None:
        raise ConfigError(f"no profile {device.profile!r}")
    return load_unit_profile(found)


def _numbers(text: str, *, lowest: int, highest: int, option: str) -> list[int]:
    """Parse `1-4,10` into numbers, in order, each once."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not first.isdecimal() or not last.isdecimal():
            raise ConfigError(f"{option} {text!r}: write numbers like 1-32 or 1,2,10")
        numbers.extend(range(int(first), int(last) + 1) if int(last) <= highest else [highest + 1])
    if not numbers or min(numbers) < lowest or max(numbers) > highest:
        raise ConfigError(f"{option} {text!r}: from {lowest} to {highest}")
    return list(dict.fromkeys(numbers))


def _found_table(found: Iterable[tuple[int, Answered]], *, is_serial: bool) -> Table:
    table = Table("unit", *(("baud",) if is_serial else ()), "answer")
    for speed, answer in found:
        words = answer.words if answer.is_clear else f"garbled: {answer.words} (another speed, or two of one address?)"
        table.add_row(str(answer.unit), *((str(speed),) if is_serial else ()), words)
    if not table.row_count:
        table.add_row("none", *(("",) if is_serial else ()), "nobody answered")
    return table


def _state_table(name: str, profile: UnitProfile, state: UnitValues) -> Table:
    table = Table("what", "says", title=f"{name} ({profile.name})", title_justify="left")
    if state.position:
        table.add_row("position", state.position)
    for point, words in state.points.items():
        table.add_row(point, words)
    for reading, words in state.readings.items():
        table.add_row(reading, words)
    return table
