"""The lines of a running gateway: look-up by name or address, scans, and frames as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

import typer
from rich.console import Console
from rich.progress import Progress

from drivers.modbus.survey import UnitValues
from gateway.cli.client import RunningGatewayClient
from gateway.cli.target import connected
from gateway.domain.errors import ConfigError, GatewayUnreachable
from gateway.lines.frames import Frame
from gateway.lines.scans import Scan
from gateway.web.status.line_answers import FramesAnswer, LinesAnswer, LineShown, ScanAnswer, ValuesAnswer

_LOOK_SECONDS = 0.5
_LONGEST_SCAN_SECONDS = 660.0


def lines_of(gateway: RunningGatewayClient) -> tuple[LineShown, ...]:
    """Return the lines of the gateway. Raises GatewayError."""
    return gateway.answer_of(LinesAnswer, "/status/line/list", None).lines


def line_named(gateway: RunningGatewayClient, wanted: str) -> LineShown | None:
    """Return the gateway's line with this name or address; None if there is none. Raises GatewayError."""
    return next((line for line in lines_of(gateway) if wanted in {line.name, line.url}), None)


def must_have(gateway: RunningGatewayClient, wanted: str) -> LineShown:
    """Return the gateway's line with this name or address. Raises ConfigError if there is none."""
    line = line_named(gateway, wanted)
    if line is None:
        known = ", ".join(f"{line.name} ({line.url})" for line in lines_of(gateway)) or "none"
        raise ConfigError(f"the gateway polls no line {wanted!r}; its lines: {known}")
    return line


def asked_there(
    line: str, ask: Callable[[RunningGatewayClient, LineShown], None], *, data: Path, url: str, force: bool
) -> bool:
    """Call `ask` with the running gateway and its line; return False if no gateway runs here, or it has no such line.

    With `url`, a missing gateway or line is an error (GatewayUnreachable, ConfigError). With `force`, no gateway is
    asked.
    """
    if force:
        return False
    with connected(data, url) as gateway:
        try:
            known = must_have(gateway, line) if url else line_named(gateway, line)
        except GatewayUnreachable:
            if url:
                raise
            known = None
        if known is None:
            return False
        ask(gateway, known)
    return True


def scan(gateway: RunningGatewayClient, line: str, *, first: int, last: int, through_converter: bool) -> Scan:
    """Scan a line through the gateway while it is idle, with a progress bar on stderr; return the result.

    Ctrl-C stops the scan and returns what it has found. Raises GatewayError.
    """
    body = {"line": line, "first": first, "last": last, "through_converter": through_converter}
    found = gateway.answer_of(ScanAnswer, "/status/line/scan", body).scan
    until = time.monotonic() + _LONGEST_SCAN_SECONDS
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"asking on {line}", total=found.total)
            while not found.ended and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)
                found = must_have(gateway, line).scan or found
                progress.update(task, completed=found.asked + len(found.unasked))
    except KeyboardInterrupt:
        found = gateway.answer_of(ScanAnswer, "/status/line/scan/stop", {"line": line}).scan
    return found


def follow(gateway: RunningGatewayClient, line: str, *, seconds: float | None) -> Iterator[Frame]:
    """Yield the last frames of a line, then each as it comes, for `seconds`; None: for ever. Raises GatewayError."""
    after, until = 0, None if seconds is None else time.monotonic() + seconds
    while True:
        asked = urlencode({"line": line, "after": after})
        for frame in gateway.answer_of(FramesAnswer, f"/status/line/frames?{asked}", None).frames:
            after = frame.number
            yield frame
        if until is not None and time.monotonic() >= until:
            return
        time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)


def device_values(gateway: RunningGatewayClient, device_id: int) -> UnitValues:
    """Return every value that the device's profile names, read while its line is idle. Raises GatewayError."""
    return gateway.answer_of(ValuesAnswer, "/status/line/values", {"id": device_id}).values


def show(frame: Frame) -> None:
    """Print a frame as one line."""
    when = datetime.fromtimestamp(frame.at / 1_000_000).astimezone().strftime("%H:%M:%S.%f")[:-3]
    whom = (
        "" if frame.unit is None else f"unit {frame.unit}" + (f" ({', '.join(frame.devices)})" if frame.devices else "")
    )
    purpose = "" if frame.purpose == "poll" else f" [{frame.purpose}]"
    took = f" after {frame.milliseconds:g} ms" if frame.good else ""
    sign = " " if frame.good else "!"
    asked = f"{whom}{purpose}: {frame.asked}: " if frame.unit is not None else ""
    typer.echo(f"{when} {sign} {asked}{frame.told}{took}")
