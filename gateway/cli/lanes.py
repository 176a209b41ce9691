"""`edge-gateway lanes` and `status`: shows the site and its lanes, watches them, and commands their gates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from gateway.cli.client import RunningGatewayClient
from gateway.cli.printing import print_answers, print_json
from gateway.cli.site_now import PATH, CommandNow, LaneNow, SiteAnswer, SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.commands import CommandState
from gateway.domain.errors import GatewayError
from gateway.domain.problems import ProblemKind

app = typer.Typer(
    no_args_is_help=True,
    help="Show the lanes, watch them, and open, close, stop or hold a gate.\n\n"
    "Example: edge-gateway lanes open north-entry",
)
_LOOK_SECONDS = 0.5
MOVE_SECONDS = 30.0
_Lane = Annotated[str, typer.Argument(metavar="LANE", help="The lane's id or name.")]
_Reason = Annotated[str, typer.Option("--reason", help="Why, for the event and for the page.")]

_NOT_READY = 1


@app.command("list")
def show(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List the lanes with their gates. The exit status is 1 when one cannot work.

    Example: edge-gateway lanes list
    """
    with connected(data, url) as gateway:
        site = site_now(gateway)
    if as_json:
        print_answers(site.lanes)
    else:
        for lane in site.lanes:
            typer.echo(f"{lane.lane_id}  {lane.name}: {lane_words(lane)}")
    if any(lane.unable for lane in site.lanes):
        raise typer.Exit(1)


@app.command("watch")
def watch(
    lane: Annotated[str, typer.Argument(metavar="LANE", help="The lane's id or name; all without one.")] = "",
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Print each change of a lane, or of all, until Ctrl-C.

    Example: edge-gateway lanes watch north-entry
    """
    with connected(data, url) as gateway:
        shown: dict[str, str] = {}
        while True:
            site = site_now(gateway)
            for one in (site.lane(lane),) if lane else site.lanes:
                words = f"{lane_words(one)}; arming loop {one.vehicle}, closing loop {one.under}"
                if shown.get(one.lane_id) != words:
                    shown[one.lane_id] = words
                    typer.echo(f"{time.strftime('%H:%M:%S')}  {one.name}: {words}")
            time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)


@app.command("open")
def open_gate(lane: _Lane, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Open a lane's gate, and wait until it is open. The exit status is 1 when that fails.

    Example: edge-gateway lanes open north-entry
    """
    _move(lane, "open", data=data, url=url)


@app.command("close")
def close_gate(lane: _Lane, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Close a lane's gate, and wait until it is closed. It is refused while a safety input is on or unknown.

    Example: edge-gateway lanes close north-entry
    """
    _move(lane, "closed", data=data, url=url)


@app.command("stop")
def stop_gate(lane: _Lane, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Stop a lane's gate where it is. It stays there until a person opens or closes it.

    Example: edge-gateway lanes stop north-entry
    """
    with connected(data, url) as gateway:
        found = site_now(gateway).lane(lane)
        gateway.asked("/status/lane/stop", {"lane_id": found.lane_id})
    typer.echo(f"{found.name}: stop is given")


@app.command("hold")
def hold(lane: _Lane, reason: _Reason = "", data: Data = USUAL_DATA, url: Url = "") -> None:
    """Hold a lane open until `release`.

    Example: edge-gateway lanes hold north-entry --reason "market day"
    """
    _order(lane, "hold_open", reason, "is held open", data=data, url=url)


@app.command("lock")
def lock(lane: _Lane, reason: _Reason = "", data: Data = USUAL_DATA, url: Url = "") -> None:
    """Lock a lane down until `release`: nobody is let in by a card or plate.

    Example: edge-gateway lanes lock north-entry --reason "works"
    """
    _order(lane, "lock_down", reason, "is locked down", data=data, url=url)


@app.command("release")
def release(lane: _Lane, data: Data = USUAL_DATA, url: Url = "") -> None:
    """End `hold` or `lock`: the lane works as its schedule says.

    Example: edge-gateway lanes release north-entry
    """
    _order(lane, None, "", "works as its schedule says", data=data, url=url)


def _order(named: str, order: str | None, reason: str, words: str, *, data: Data, url: Url) -> None:
    with connected(data, url) as gateway:
        found = site_now(gateway).lane(named)
        gateway.asked("/status/lane/order", {"lane_id": found.lane_id, "order": order, "reason": reason})
    typer.echo(f"{found.name} {words}")


_COMMANDS: Mapping[str, str] = {"open": "/v1/device/open", "closed": "/v1/device/close"}


def _move(named: str, wanted: str, *, data: Data, url: Url) -> None:
    """Command the gate and follow it for 30 s.

    Raises GatewayError when the command is refused, and when the gate does not reach the position `wanted`.
    """
    with connected(data, url) as gateway:
        found = site_now(gateway).lane(named)
        gateway.asked(_COMMANDS[wanted], {"id": found.gate_id})
        lane = _followed(gateway, found, wanted)
    refused = _command_after(lane, found, CommandState.REFUSED)
    if refused is not None and lane.position != wanted:
        raise GatewayError(f"{lane.name}: the command is refused: {refused.detail}")
    if _is_done_unseen(lane, found):
        typer.echo(f"{lane.name}: the gate's controller has the command; nothing reports where the gate is")
        return
    if lane.position != wanted:
        raise GatewayError(f"{lane.name} is {lane.position} after {MOVE_SECONDS:.0f} s: {lane_words(lane)}")
    typer.echo(f"{lane.name} is {lane.position}")


def _followed(gateway: RunningGatewayClient, lane: LaneNow, wanted: str) -> LaneNow:
    """Print each change of position; return the lane once it has the position `wanted`, or after 30 s.

    Return it too once the command is refused, or done and the gate has no position.
    """
    until = time.monotonic() + MOVE_SECONDS
    before, position = lane, lane.position
    while True:
        site: SiteNow = site_now(gateway)
        lane = site.lane(lane.lane_id)
        is_over = _command_after(lane, before, CommandState.REFUSED) or _is_done_unseen(lane, before)
        if lane.position == wanted or is_over or time.monotonic() > until:
            return lane
        if lane.position != position:
            position = lane.position
            typer.echo(f"{lane.name} is {position} …")
        time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)


def _command_after(lane: LaneNow, before: LaneNow, state: CommandState) -> CommandNow | None:
    """Return the last command to the lane's gate if it came after `before` and is in this state, else None."""
    command = lane.command
    if command is None or (before.command is not None and command.id == before.command.id):
        return None
    return command if command.state == state else None


def _is_done_unseen(lane: LaneNow, before: LaneNow) -> bool:
    """Return whether a new command is done, though the gate's position is unknown: it has none."""
    return lane.position == "unknown" and _command_after(lane, before, CommandState.DONE) is not None


def status(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show the site in a few lines: lanes, devices, cameras, central. The exit status is 1 when a lane cannot work.

    Example: edge-gateway status
    """
    with connected(data, url) as gateway:
        told = gateway.asked(PATH)
    site = gateway.read(SiteAnswer, told).snapshot
    if as_json:
        print_json(told)
    else:
        typer.echo("\n".join(_lines(site)))
    if not site.gateway.ready:
        raise typer.Exit(_NOT_READY)


def _lines(site: SiteNow) -> Iterator[str]:
    yield f"{site.gateway.site}: {site.gateway.headline} (edge-gateway {site.gateway.version})"
    for lane in site.lanes:
        yield f"lane     {lane.name}: {lane_words(lane)}"
    away = [device.name for device in site.devices if device.online is not True]
    yield f"devices  {_share(len(site.devices), away)} answer{_not(away)}"
    silent = [camera.name for camera in site.cameras if camera.condition != "recording"]
    yield f"cameras  {_share(len(site.cameras), silent)} record{_not(silent)}"
    for area in site.areas:
        limit = "" if area.limit is None else f" of {area.limit}"
        yield f"area     {area.name}: {area.count}{limit} inside"
    if site.storage is not None:
        yield f"footage  {site.storage.text}"
    if site.central is not None:
        refuses = any(notice.kind == ProblemKind.CENTRAL_SIGN_IN_REFUSED for notice in site.central.notices)
        answers = "answers, but refuses the sign-in" if refuses else "answers"
        state = {True: answers, False: f"does not answer: {site.central.error}", None: "not asked yet"}
        waits = "" if site.books is None else f"; records waiting: {site.books.waiting}, refused: {site.books.parked}"
        yield f"central  {state[site.central.reachable]}{waits}"


def lane_words(lane: LaneNow) -> str:
    """Return a lane's state in one line: its gate, its phase, standing order, and troubles."""
    words = [f"gate {lane.position}"]
    if lane.phase != "idle" or not (lane.unable or lane.troubles):
        words.append(lane.phase)
    words += [words_of for words_of in (lane.order_text, lane.note) if words_of]
    words += [f"CANNOT WORK: {trouble.text}" for trouble in lane.unable]
    words += [trouble.text for trouble in lane.troubles if trouble not in lane.unable]
    return ", ".join(words)


def _share(count: int, missing: list[str]) -> str:
    return f"{count - len(missing)} of {count}"


def _not(names: list[str]) -> str:
    return f", not: {', '.join(names)}" if names else ""
