"""Commands to the site's gates, read from central's event list.

The interface has no other way to command a gate: central records an event about the gate, with numbers that the site
file maps to a command. Such a command acts once, while it is fresh, and only if it was given after this gateway
started. So a command that the gateway may have carried out before a restart is never carried out again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import Enum
from itertools import islice
from typing import Protocol

import structlog
from pydantic import JsonValue

from gateway.central.client.answers import JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.lists import MODEST, ListReader, PageSize, Tally
from gateway.central.client.values import whole_of
from gateway.domain.commands import CENTRAL_EVENT, Command, GateAction
from gateway.domain.errors import CentralRefused, CentralUnavailable, CommandRefused, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import Lookup
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, Journal
from gateway.store.events.commands import CommandRecords
from gateway.texts import Text, text

log = structlog.get_logger(__name__)

_EVENTS = Lookup("/v1/event/list", "events", (), by_cursor=True)
_MOST_PAGES = 10
_LARGEST_ID = 2**53  # beyond it, programs that hold ids as floating point cannot tell them apart
_MOST_KNOWN = 5_000  # several times as many as one poll reads
_UNKNOWN_DOUBT = 1.0
_LONGEST_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class CommandNumbers:
    """Numbers of central's events that mean a command; None matches any number."""

    type: int
    action: GateAction
    category: int | None = None
    subcategory: int | None = None

    def is_of(self, record: JsonObject) -> bool:
        """Return whether an event has these numbers."""
        wanted = (("type", self.type), ("category", self.category), ("subcategory", self.subcategory))
        return all(number is None or _is_number(record.get(name), number) for name, number in wanted)


class CommandVerdict(Enum):
    """Decision about an event that means a command."""

    ACT = "act"
    BEFORE_START = "before_start"
    LATE = "late"
    NOT_YET = "not_yet"
    UNDATED = "undated"


@dataclass(frozen=True, slots=True)
class CentralNow:
    """Central's time in seconds since 1970, give or take `doubt`, and its value when this gateway started."""

    seconds: float
    doubt: float
    started: float


def judge(date_at: object, now: CentralNow, *, fresh: float, zone: tzinfo) -> CommandVerdict:
    """Decide whether a command given at `date_at` acts now; in doubt it does not.

    `fresh` is for how many seconds it may act. A time without an offset is in `zone`.
    """
    try:
        moment = datetime.fromisoformat(date_at if isinstance(date_at, str) else "")
        at = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return CommandVerdict.UNDATED
    if at < now.started + now.doubt:
        return CommandVerdict.BEFORE_START
    if now.seconds + now.doubt - at > fresh:
        return CommandVerdict.LATE
    return CommandVerdict.NOT_YET if at - now.seconds > now.doubt + 1 else CommandVerdict.ACT


class GateCommands(Protocol):
    """Receiver of commands for gates; see `Lanes.command`."""

    async def command(self, *, device_id: int, action: GateAction, source: str, command_id: str) -> Command:
        """Record a command and send it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules:
    """The site file's settings for commands of central.

    Attributes:
        meanings: the events that are commands.
        gates: the ids of the site's gates; only their events are asked for.
        zone: the site's time zone.
        every: the seconds between polls.
        fresh: the seconds for which a command may act.
    """

    meanings: Sequence[CommandNumbers]
    gates: Sequence[int]
    zone: tzinfo
    every: float
    fresh: float


class LaneCommands:
    """Poller of central's events that carries out the commands among them."""

    def __init__(
        self,
        *,
        client: CentralClient,
        lanes: GateCommands,
        commands: CommandRecords,
        journal: Journal,
        clock: Clock,
        rules: CommandRules,
    ) -> None:
        self._client = client
        self._lanes = lanes
        self._commands = commands
        self._journal = journal
        self._clock = clock
        self._rules = rules
        self._gates = tuple(sorted(rules.gates))
        self._started = clock.monotonic()
        self._backoff = Backoff(first=2 * rules.every, longest=max(_LONGEST_WAIT, 2 * rules.every))
        self._known: dict[int, None] = {}
        self._size = PageSize(MODEST)
        self._unreadable = self._counted = 0

    @property
    def unreadable(self) -> int:
        """Number of events of the last poll that were not carried out because they lack a usable id or device id."""
        return self._unreadable

    async def run(self) -> None:
        """Poll until cancelled; less often while central does not answer."""
        failures = 0
        while True:
            try:
                await self.look()
                failures = 0
            except (CentralUnavailable, CentralRefused) as error:  # the client has noted both
                failures += 1
                log.debug("central_commands_not_seen", error=str(error))
            await asyncio.sleep(self._backoff.wait(failures) if failures else self._rules.every)

    async def look(self) -> None:
        """Poll once and carry out new commands. Raises CentralUnavailable, CentralRefused, StoreError."""
        self._counted = 0
        new = sorted([item async for item in self._new()], key=lambda item: item[0])
        if self._counted and not self._unreadable:
            log.warning("central_events_unreadable", count=self._counted)
        self._unreadable = self._counted
        for number, record in new:
            self._known[number] = None
            meaning = self._meaning(record)
            if meaning is not None:
                await self._carry_out(number, record, meaning.action)
        for number in tuple(islice(self._known, max(len(self._known) - _MOST_KNOWN, 0))):
            del self._known[number]

    async def _new(self) -> AsyncIterator[tuple[int, JsonObject]]:
        """Yield new events about the site's gates, the newest first, back to the page that has no fresh one."""
        tally = Tally(_EVENTS.resource)
        reader = ListReader(
            client=self._client,
            lookup=_EVENTS,
            tally=tally,
            size=self._size,
            also={"device_ids": [*self._gates]},
            id_of=_event_id,
            most_pages=_MOST_PAGES,
        )
        async with aclosing(reader.pages()) as pages:
            async for page in pages:
                page_is_recent = False
                for number, record in page.records.items():
                    if self._meaning(record) is not None and whole_of(record.get("device_id")) is None:
                        self._counted += 1
                    if number in self._known:  # those that central listed last are remembered longest
                        self._known[number] = self._known.pop(number)
                        continue
                    page_is_recent = page_is_recent or self._judge(record) in (
                        CommandVerdict.ACT,
                        CommandVerdict.NOT_YET,
                    )
                    yield number, record
                if not page_is_recent:
                    self._size.walked()
                    break
        self._counted += tally.without_id

    def _meaning(self, record: JsonObject) -> CommandNumbers | None:
        return next((meaning for meaning in self._rules.meanings if meaning.is_of(record)), None)

    async def _carry_out(self, number: int, record: JsonObject, action: GateAction) -> None:
        device = whole_of(record.get("device_id"))
        if device is None or device not in self._gates:
            return
        verdict = self._judge(record)
        if verdict is CommandVerdict.BEFORE_START:
            return
        command_id = f"central-{number}"
        if verdict is not CommandVerdict.ACT:
            why = text(f"central_command.{verdict.value}")
            await self._report(device, text(f"event.central_command.{action}", event=str(number), why=why))
        elif await self._commands.get(command_id) is None:
            try:
                await self._lanes.command(
                    device_id=device, action=action, source=f"{CENTRAL_EVENT}{number}", command_id=command_id
                )
            except (CommandRefused, NotFoundError) as error:  # the refusal is recorded
                log.info("central_command_refused", event_id=number, device=device, reason=str(error))

    def _judge(self, record: JsonObject) -> CommandVerdict:
        return judge(record.get("date_at"), self._now(), fresh=self._rules.fresh, zone=self._rules.zone)

    def _now(self) -> CentralNow:
        offset, wall = self._client.state.clock_offset, self._clock.wall()
        seconds = wall.micros / 1_000_000 + (offset.seconds if offset else 0.0)
        doubt = offset.doubt if offset else _UNKNOWN_DOUBT if wall.trusted else float("inf")
        return CentralNow(seconds, doubt, started=seconds - (self._clock.monotonic() - self._started))

    async def _report(self, device_id: int, said: Text) -> None:
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.CENTRAL_COMMAND_LATE,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=said,
            device_id=device_id,
        )
        await self._journal.record(Entry(events=(event,)))


def _event_id(record: JsonObject) -> int | None:
    """Return the event's id, any whole number from 1 to 2**53; None without one. The site stores no such events."""
    number = whole_of(record.get("id"))
    return number if number is not None and 0 < number <= _LARGEST_ID else None


def _is_number(value: JsonValue, wanted: int) -> bool:
    number = whole_of(value) if isinstance(value, str) else value
    return isinstance(number, int) and not isinstance(number, bool) and number == wanted
