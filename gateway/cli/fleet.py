"""`edge-gateway fleet`: the gateways of a fleet, and what its NATS server needs for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from gateway.cli.printing import print_value
from gateway.cli.target import JsonWanted
from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.runtime.clock import SystemClock, iso_utc
from gateway.site.addresses import endpoint_of

if TYPE_CHECKING:
    from gateway.fleet.connection import FleetServer
    from gateway.fleet.line import FleetLine
    from gateway.fleet.operator import Seen
    from gateway.fleet.signed_commands import CommandReply

app = typer.Typer(
    no_args_is_help=True,
    help="See the gateways of a fleet, command them, and prepare a NATS server for them. Runs anywhere.\n\n"
    "Example: edge-gateway fleet status --server tls://fleet.example.com:4222 --credentials operator.nk",
)
SiteName = Annotated[str, typer.Argument(metavar="SITE", help="The site's name in the fleet.")]
GatewayName = Annotated[str, typer.Argument(metavar="GATEWAY", help="The gateway's name there.")]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Where to; otherwise here, under its own name.")
]
_FAULT_FOUND = 1
_AWAY = "away"
Server = Annotated[
    str,
    typer.Option("--server", metavar="URL", envvar="EDGE_GATEWAY_FLEET", help="The NATS server, tls://HOST:PORT."),
]
Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        envvar="EDGE_GATEWAY_FLEET_CREDENTIALS",
        help="A file with your NKey seed, or a JWT credentials file.",
    ),
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", metavar="FILE", help="Authorities to trust instead of the usual ones.")
]
Key = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Your NKey seed, if --credentials is another file.", exists=True),
]


@app.command("status")
def status(
    server: Server, credentials: Credentials = None, ca_file: CaFile = None, as_json: JsonWanted = False
) -> None:
    """Show how each gateway does. The exit status is 1 when one is away or not ready.

    Example: edge-gateway fleet status --server tls://fleet.example.com:4222 --credentials operator.nk
    """
    found = sorted(asyncio.run(_seen(server, credentials, ca_file)), key=lambda one: one.name)
    now = SystemClock().wall().micros
    if as_json:
        print_value(
            [
                {
                    "gateway": one.name,
                    "state": _state(one, now),
                    "at": iso_utc(one.at),
                    **one.beat.model_dump(mode="json"),
                }
                for one in found
            ]
        )
    else:
        typer.echo("\n".join(_lines(found, now)) if found else "no gateway has sent a heartbeat yet")
    if any(_state(one, now) != "good" for one in found):
        raise typer.Exit(_FAULT_FOUND)


@app.command("prepare")
def prepare(
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="So long the stream keeps events.")] = 30,
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=5, help="On so many servers of a cluster.")] = 1,
) -> None:
    """Make the stream of events and the buckets of heartbeats and shared areas at a NATS server, or change them.

    Example: edge-gateway fleet prepare --server tls://fleet.example.com:4222 --credentials operator.nk --days 90
    """
    asyncio.run(_prepare(server, credentials, ca_file, days=days, replicas=replicas))
    typer.echo(f"the server takes events, and keeps them for {days} days")


@app.command("collect")
def collect(
    server: Server,
    database: Annotated[
        str,
        typer.Option(
            "--database",
            metavar="URL",
            envvar="EDGE_GATEWAY_FLEET_DATABASE",
            help="postgresql://USER@HOST/NAME; the password in PGPASSWORD or in ~/.pgpass.",
        ),
    ],
    credentials: Credentials = None,
    ca_file: CaFile = None,
    once: Annotated[bool, typer.Option("--once", help="End when everything is collected that is there now.")] = False,
) -> None:
    """Write the events of all gateways into PostgreSQL, each exactly once, until Ctrl-C. Makes its tables itself.

    It may be killed and started at any moment. A second one waits and takes over when the first one ends.

    Example: edge-gateway fleet collect --server tls://fleet.example.com:4222 --credentials collector.nk
    --database postgresql://collector@localhost/fleet
    """
    from gateway.fleet.collector import Collector  # noqa: PLC0415  # as below

    collector = Collector(
        server=server_at(server, credentials, ca_file, inbox="_INBOX.collector"),
        database=database,
        told=typer.echo,
    )
    asyncio.run(collector.collect(once=True) if once else collector.run())
    refused = f", {collector.refused:,} messages were no records: see the table refused_message"
    typer.echo(f"{collector.records:,} records collected{refused * bool(collector.refused)}")


@app.command("rollout")
def rollout(
    change: Annotated[Path, typer.Argument(metavar="CHANGE.toml", help="The change, [[edits]] for each entry.")],
    gateways: Annotated[list[str], typer.Argument(metavar="SITE.GATEWAY...", help="In this order.")],
    *,
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    key: Key = None,
    first: Annotated[int, typer.Option("--first", min=1, help="So many gateways go first.")] = 1,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Then so many at a time.")] = 10,
    healthy: Annotated[
        float, typer.Option("--healthy", min=0, metavar="SECONDS", help="So long all must be well before more follow.")
    ] = 300,
) -> None:
    """Change the site files of many gateways, a few first; stop and take all back when one of them is not well.

    Example: edge-gateway fleet rollout holidays.toml north.gate-1 south.gate-1 --credentials operator.nk
    """
    from gateway.fleet.operator import read_edits  # noqa: PLC0415  # as below

    if wrong := [name for name in gateways if name.count(".") != 1]:
        raise ConfigError(f"{wrong[0]}: a gateway is named SITE.GATEWAY")
    try:
        edits = read_edits(change.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{change}: must be TOML with a table [[edits]] for each change") from error
    wanted = {
        "seed": secret_of(key or credentials),
        "edits": edits,
        "waves": (first, batch),
        "healthy_seconds": healthy,
    }
    asyncio.run(_rollout((server, credentials, ca_file), gateways, wanted))
    typer.echo(f"rolled out to {len(gateways)} gateways")


@app.command("command")
def command(
    site: SiteName,
    gateway: GatewayName,
    action: Annotated[Literal["open", "close", "stop", "hold", "snapshot", "reload"], typer.Argument()],
    lane: Annotated[str, typer.Argument(metavar="LANE", help="The lane, for open, close, stop and hold.")] = "",
    *,
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    key: Key = None,
    order: Annotated[
        Literal["hold_open", "lock_down", "normal", "none"],
        typer.Option("--order", help="With hold: the standing order; none follows the schedule again."),
    ] = "hold_open",
    reason: Annotated[str, typer.Option("--reason", help="With hold: why.")] = "",
    seconds: Annotated[
        float, typer.Option("--within", min=1, max=60, help="Seconds after which it must not act any more.")
    ] = 10,
) -> None:
    """Command one gateway, and follow the command until the gate has moved. The exit status is 1 unless it did.

    Nothing is sent to a gateway that is away; the exit status is 3 then.

    Example: edge-gateway fleet command north gate-1 open entry --credentials operator.nk
    """
    if (action in ("open", "close", "stop", "hold")) is not bool(lane):
        raise ConfigError(f"{action} {'takes no lane' if lane else 'needs a lane'}")
    wanted = {
        "seed": secret_of(key or credentials),
        "lane": lane,
        "order": None if order == "none" else order,
        "reason": reason,
        "seconds": seconds,
    }
    last = asyncio.run(_command((server, credentials, ca_file), (site, gateway), action, wanted))
    if last.result is not None:
        print_value(last.result)
    if last.state not in ("moved", "done"):
        raise GatewayError(last.detail or f"the command's outcome: {last.state}")


@app.command("clip")
def clip(
    site: SiteName,
    gateway: GatewayName,
    camera: Annotated[int, typer.Argument(metavar="CAMERA", help="The camera's number.", min=1)],
    begin: Annotated[str, typer.Argument(metavar="BEGIN", help="With its zone, as 2026-11-26T09:30:00+01:00.")],
    end: Annotated[str, typer.Argument(metavar="END", help="Ten minutes later at most.")],
    *,
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    key: Key = None,
    output: Output = None,
) -> None:
    """Fetch a clip of a camera from a gateway. It is written only if it is whole; a lost line is taken up again.

    Example: edge-gateway fleet clip north gate-1 201 2026-11-26T08:30:00Z 2026-11-26T08:31:00Z --credentials my.nk
    """
    times = {"begin": _time("BEGIN", begin), "end": _time("END", end)}
    place = (server, credentials, ca_file, key)
    asyncio.run(_fetch(place, (site, gateway), "clip", output, {"camera": camera, **times}))


@app.command("proof")
def proof(
    site: SiteName,
    gateway: GatewayName,
    event: Annotated[int, typer.Argument(metavar="EVENT", help="The event's number at the gateway.", min=1)],
    *,
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    key: Key = None,
    output: Output = None,
) -> None:
    """Fetch the proof package of an event from a gateway; `edge-gateway evidence verify` verifies it anywhere.

    Example: edge-gateway fleet proof north gate-1 4711 --credentials operator.nk --output proof.zip
    """
    asyncio.run(_fetch((server, credentials, ca_file, key), (site, gateway), "proof", output, {"event": event}))


@app.command("bundle")
def bundle(
    site: SiteName,
    gateway: GatewayName,
    *,
    server: Server,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    key: Key = None,
    output: Output = None,
) -> None:
    """Fetch a support bundle, without secrets, from a gateway.

    Example: edge-gateway fleet bundle north gate-1 --credentials operator.nk
    """
    asyncio.run(_fetch((server, credentials, ca_file, key), (site, gateway), "bundle", output, {}))


def _time(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{name} must be a time such as 2026-11-26T09:30:00+01:00") from error
    if found.tzinfo is None:
        raise ConfigError(f"{name} needs its zone, as 2026-11-26T09:30:00+01:00 or 2026-11-26T08:30:00Z")
    return found


def _say(reply: CommandReply) -> None:
    typer.echo(f"{reply.state}{': ' * bool(reply.detail)}{reply.detail}")


async def _fetch(
    place: tuple[str, Path | None, Path | None, Path | None],
    name: tuple[str, str],
    action: str,
    output: Path | None,
    wanted: dict[str, Any],
) -> None:
    from gateway.fleet.names import FleetName  # noqa: PLC0415  # as below
    from gateway.fleet.operator import FileFetch  # noqa: PLC0415  # as below
    from gateway.fleet.signed_commands import Action  # noqa: PLC0415  # as below

    server, credentials, ca_file, key = place
    fetch = FileFetch(
        connect=partial(line_to, server, credentials, ca_file),
        name=FleetName(*name),
        seed=secret_of(key or credentials),
        told=_say,
        clock=SystemClock(),
    )
    path, offer = await fetch.run(Action(action), output, **wanted)
    typer.echo(f"written to {path}: {offer.size:,} bytes, SHA-256 {offer.sha256}")
    for gap in offer.gaps:
        typer.echo(f"missing from {gap}")


async def _command(
    place: tuple[str, Path | None, Path | None], name: tuple[str, str], action: str, wanted: Any
) -> CommandReply:
    from gateway.fleet import operator  # noqa: PLC0415  # as below
    from gateway.fleet.names import FleetName  # noqa: PLC0415  # as below
    from gateway.fleet.signed_commands import Action  # noqa: PLC0415  # as below

    last: CommandReply | None = None
    async with line_to(*place) as line:
        async for last in operator.command(line, FleetName(*name), action=Action(action), **wanted):
            _say(last)
    if last is None:
        raise GatewayError("the gateway did not reply")
    return last


async def _rollout(place: tuple[str, Path | None, Path | None], names: list[str], wanted: Any) -> None:
    from gateway.fleet.operator import Rollout  # noqa: PLC0415  # as below

    async with line_to(*place) as line:
        await Rollout(line=line, told=typer.echo, clock=SystemClock(), **wanted).run(list(dict.fromkeys(names)))


async def _prepare(server: str, credentials: Path | None, ca_file: Path | None, *, days: int, replicas: int) -> None:
    from gateway.fleet import operator  # noqa: PLC0415  # help and wrong options answer faster

    async with line_to(server, credentials, ca_file) as line:
        await operator.prepare(line, days=days, replicas=replicas)


async def _seen(server: str, credentials: Path | None, ca_file: Path | None) -> list[Seen]:
    from gateway.fleet import operator  # noqa: PLC0415  # as above

    async with line_to(server, credentials, ca_file) as line:
        return [one async for one in operator.gateways(line)]


def _state(one: Seen, now: int) -> str:
    from gateway.fleet.heartbeat import AWAY_SECONDS  # noqa: PLC0415  # as above

    if now - one.at > AWAY_SECONDS * 1_000_000:
        return _AWAY
    return "good" if one.beat.ready else "not ready"


def _lines(found: list[Seen], now: int) -> Iterator[str]:
    rows = [("GATEWAY", "STATE", "VERSION", "SEEN", "WAITING", "HEADLINE")]
    for one in found:
        age = f"{_lasting(max(0, now - one.at) // 1_000_000)} ago"
        beat = one.beat
        rows.append((one.name, _state(one, now), beat.version, age, str(beat.waiting), f"{beat.site}: {beat.headline}"))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _lasting(seconds: int) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


@asynccontextmanager
async def line_to(server: str, credentials: Path | None, ca_file: Path | None) -> AsyncIterator[FleetLine]:
    """Yield a line to a server. Raises ConfigError for wrong options, GatewayUnreachable if it does not answer."""
    from gateway.fleet.connection import connected  # noqa: PLC0415  # help and wrong options answer faster
    from gateway.fleet.line import FleetAway  # noqa: PLC0415  # likewise

    try:
        async with connected(server_at(server, credentials, ca_file)) as (line, _):
            yield line
    except FleetAway as error:
        raise GatewayUnreachable(f"the fleet's server {server.partition('://')[2]}: {error}") from error


def server_at(server: str, credentials: Path | None, ca_file: Path | None, *, inbox: str = "_INBOX") -> FleetServer:
    """Return the server of these options. Raises ConfigError for wrong ones."""
    from gateway.fleet.connection import FleetServer  # noqa: PLC0415  # likewise

    try:
        endpoint = endpoint_of(server, schemes=("tls", "nats"))
    except ValueError as error:
        raise ConfigError(f"--server {error}") from error
    scheme = urlsplit(server).scheme
    if scheme == "nats" and not endpoint.is_this_machine():
        raise ConfigError("--server must be tls://…: without TLS others could read and forge what is sent")
    return FleetServer(
        url=f"{scheme}://{endpoint}",
        credentials=secret_of(credentials),
        ca_file=str(ca_file) if ca_file is not None else None,
        name="edge-gateway fleet",
        inbox=inbox,
    )


def secret_of(credentials: Path | None) -> str:
    """Read a file of credentials; "" without one. Raises ConfigError."""
    try:
        return credentials.read_text("utf-8") if credentials is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--credentials {credentials}: cannot be read") from error
