"""Lines that a command opens itself, because no running gateway has them: listening, scanning, reading one unit.

Their bytes are printed with time and direction.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction, Trace
from drivers.contract import DriverError, LinkError
from drivers.link import LinkSpec, open_link
from drivers.modbus.frames import Framing
from drivers.modbus.profile import Command, GateProfile, UnitProfile, load_unit_profile
from drivers.modbus.section import ModbusDevice
from drivers.modbus.survey import (
    LATE_SECONDS,
    AnsweringUnit,
    AnswerTrace,
    TracedAnswer,
    UnitValues,
    ask_for_unit,
    line_up,
    read_unit,
)
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.errors import CommandRefused, ConfigError
from gateway.site import Link, Site, find_profile, profile_folders

Result = TypeVar("Result")
_ESTABLISHED = "01"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SIGNS = {Direction.SENT: ("→", "cyan"), Direction.RECEIVED: ("←", "green"), Direction.DROPPED: ("✗", "yellow")}
_ASCII = 0x80


def late(answer: TracedAnswer, timeout: float) -> AnsweringUnit:
    """Return a unit that answered late or unasked as a result of `probe bus`, with a hint. `timeout` in seconds."""
    if answer.after is None:
        words = "heard though it was not asked: another master on the line, or an answer under a wrong address"
        return AnsweringUnit(answer.unit, words, is_clear=True)
    wanted = math.ceil(answer.after * 12) / 10
    words = f"answers late, after {answer.after:.2f} s: more than --timeout {timeout:g}; try --timeout {wanted:g}"
    return AnsweringUnit(answer.unit, words, is_clear=True)


def hint_of(traced: AnswerTrace, device: ModbusDevice, profile: UnitProfile) -> str:
    """Return a hint from the bytes that arrived instead of the answer; "" without one."""
    answers = traced.answers()
    others = ", ".join(str(answer.unit) for answer in answers if answer.unit != device.unit)
    own = next((answer.after for answer in answers if answer.unit == device.unit), None)
    if own is not None and own > profile.reply_ms / 1000:
        return f"its answer came after {own:.2f} s, and profile {device.profile!r} waits {profile.reply_ms} ms"
    if others:
        return f"but unit {others} was heard: is {device.unit} the right address of device {device.id}?"
    return ""


async def listen(spec: LinkSpec, trace: LineTrace, seconds: float) -> None:
    """Trace every byte that arrives within `seconds`. Raises LinkError."""
    connection = await open_link(spec)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    arrival = await connection.read()
                    trace(Direction.RECEIVED, arrival.data, arrival.at)
    finally:
        await connection.close()


async def scan(
    specs: list[LinkSpec], units: list[int], *, framing: Framing, timeout: float, console: Console, frames: bool
) -> list[tuple[int, AnsweringUnit]]:
    """Ask every unit with each of the line's settings; return the speed and the answer of each unit that answered.

    `timeout`: seconds for each answer; `frames`: print the bytes to `console`. Raises LinkError.
    """
    found: list[tuple[int, AnsweringUnit]] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("asking", total=len(specs) * len(units))
        for spec in specs:
            traced = AnswerTrace(framing=framing)
            trace = _both(LineTrace(console=console), traced) if frames else traced
            line = Bus(name=spec.url, spec=spec, trace=trace, silent_limit=len(units) + 1)  # most are silent

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


async def look(
    spec: LinkSpec,
    device: ModbusDevice,
    profile: UnitProfile,
    *,
    send: Literal["open", "stop"] | None,
    trace: LineTrace,
) -> UnitValues:
    """Send the command `send` to a device, unless it is None, and read the device's values. Raises DriverError."""
    traced = AnswerTrace(framing=device.framing)
    line = Bus(name=device.link, spec=spec, trace=_both(trace, traced))
    requests = ModbusRequests(
        bus=line,
        unit=device.unit,
        framing=device.framing,
        timeout=profile.reply_ms / 1000,
        pause=profile.pause_ms / 1000,
    )
    seen: list[UnitValues] = []

    async def ask() -> None:
        await line_up(line)
        try:
            if send is not None:
                await read_unit(requests, profile)  # on a line that echoes, only reads show whose answer it is
                await _send(requests, profile, send)
            seen.append(await read_unit(requests, profile))
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


async def _send(requests: ModbusRequests, profile: UnitProfile, name: Literal["open", "stop"]) -> None:
    command: Command | None = None
    if isinstance(profile, GateProfile):
        command = profile.commands.open if name == "open" else profile.commands.stop
    if command is None:
        raise CommandRefused(f"{profile.name} has no command to {name}")
    try:
        await requests.write(profile.write_of(command), deadline=time.monotonic() + 2)
        await asyncio.sleep(command.pulse_seconds or 0.0)
    finally:
        if command.pulse_seconds is not None:
            await requests.write(profile.release_of(command), deadline=time.monotonic() + 2)


async def _beside(line: Bus, body: Callable[[], Awaitable[None]]) -> None:
    """Run `body` while the line's task runs."""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(line.run())
        try:
            await body()
        finally:
            serving.cancel()


def run_on_line(body: Coroutine[None, None, Result]) -> Result:
    """Run `body` to its end and return its result. Raises CommandRefused with one sentence for a fault of the line."""
    try:
        return asyncio.run(body)
    except DriverError as error:
        raise CommandRefused(str(error)) from error
    except ExceptionGroup as group:  # a task group wraps the fault of the line
        first = _first(group)
        if isinstance(first, DriverError):
            raise CommandRefused(str(first)) from group
        raise


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def spec_at(url: str, *, baud: int, parity: Literal["none", "even", "odd"], stop_bits: int, force: bool) -> LinkSpec:
    """Return the settings of the line at an address. Raises ConfigError, or CommandRefused if the line is in use."""
    try:
        link = Link(id="line", url=url, baud=baud, parity=parity, stop_bits=1 if stop_bits == 1 else 2)
    except ValueError as error:
        raise ConfigError(
            f"{url!r} must be serial:/dev/… or tcp://host:port, or a line of a running gateway"
        ) from error
    return spec_of(link, force=force)


def spec_of(link: Link, *, force: bool) -> LinkSpec:
    """Return the settings of a link. Raises CommandRefused if the line is in use, unless `force`."""
    if not force and is_connected(link.url):
        raise CommandRefused(
            f"{link.url} is open already on this machine, by a program that is no gateway you may ask:"
            " stop it, or use --force"
        )
    return replace(link.spec(), exclusive=not force)


def profile_of(site: Site, path: Path, device: ModbusDevice) -> UnitProfile:
    """Return the profile of a device of a site file. Raises ConfigError if there is none."""
    found = find_profile(device.profile, profile_folders(site, path))
    if found is None:
        raise ConfigError(f"no profile {device.profile!r}")
    return load_unit_profile(found)


def addresses(text: str, *, lowest: int, highest: int, option: str) -> list[int]:
    """Parse a list such as `1-4,10` into numbers, in order, each once.

    Raises ConfigError, which names `option`, for malformed text or a number outside `lowest` to `highest`.
    """
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


def is_connected(url: str) -> bool:
    """Return whether this machine has a TCP connection to the line's far end. False for serial ports.

    Two masters on one line would garble each other's answers.

    A serial port needs no such check: the program that uses it holds a lock.
    """
    parts = urlsplit(url)
    if parts.scheme != "tcp" or not parts.hostname or not parts.port:
        return False
    try:
        hosts = {str(found[4][0]) for found in socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)}
    except OSError:  # opening it will fail too, with its own message
        return False
    wanted = {(_in_table(host), f"{parts.port:04X}") for host in hosts}
    return any(row in wanted for table in _TABLES for row in _remote_ends(table))


def _remote_ends(table: Path) -> list[tuple[str, str]]:
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:  # a system without this table
        return []
    rows = (line.split() for line in lines)
    return [(row[2].split(":")[0], row[2].split(":")[1]) for row in rows if row[3] == _ESTABLISHED]


def _in_table(host: str) -> str:
    """Return an address in the form of /proc/net/tcp: hexadecimal 32-bit words in the machine's byte order."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    return "".join(packed[place : place + 4][::-1].hex().upper() for place in range(0, len(packed), 4))


class LineTrace:
    """Printer of the bytes on a line: `→` sent, `←` received, `✗` received but belonging to no request."""

    def __init__(
        self, *, console: Console, characters: bool = False, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Set the time 0 of the trace to now. `characters`: show the bytes as text too."""
        self._characters = characters
        self._console = console
        self._began = monotonic()

    def __call__(self, direction: Direction, data: bytes, at: float) -> None:
        """Print some bytes; `at` is the monotonic time at which they were sent or arrived."""
        sign, colour = _SIGNS[direction]
        line = Text(f"{at - self._began:9.3f} s {sign} ")
        line.append(data.hex(" "), style=colour)
        if self._characters:
            line.append(f"  {_text(data)}")
        self._console.print(line, soft_wrap=True)


def _text(data: bytes) -> str:
    """Return the printable ASCII characters, and a dot for every other byte."""
    return "".join(chr(byte) if chr(byte).isprintable() and byte < _ASCII else "·" for byte in data)
