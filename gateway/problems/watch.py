"""Watch over the site's problems: the beginning and acknowledgement of each, and events of its beginning and end.

Beginnings are on disk too, so that a problem that outlasts a restart keeps its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import Event, EventKind, RecordedEvent, Scalar
from gateway.domain.problems import ProblemKind as K
from gateway.domain.wall_time import WallMicros
from gateway.problems.found import SiteState, verdict
from gateway.problems.problem import Acknowledgement, Problem, SitePart, Verdict
from gateway.runtime.clock import Clock, WallTimes
from gateway.runtime.durable_files import write_durably
from gateway.store.engine.changes import Changes
from gateway.texts import Words, text

_LOOK_SECONDS = 1.0
_LONGEST_LOOK_SECONDS = 2.0
_LASTS_SECONDS = 2.0
"""A problem that ends sooner gets no event."""
_RECALL_SECONDS = 60.0
"""A problem that is not found again within this time after a start is over: its acknowledgement and beginning go."""
_TOLD_BY_OWNER = frozenset(
    {
        K.GATE_OFFLINE,
        K.GATE_POSITION_UNKNOWN,
        K.GATE_LIMITS_BOTH_ON,
        K.GATE_STOPPED,
        K.GATE_DOES_NOT_MOVE,
        K.GATE_TOO_SLOW,
        K.GATE_HELD_OPEN,
        K.GATE_FORCED_OPEN,
        K.VEHICLE_STUCK,
        K.INPUT_STUCK,
        K.INPUT_CHATTERS,
        K.KEY_SWITCH_ON,
        K.FIRE_INPUT_ACTIVE,
        K.SCHEDULE_DOUBTED,
        K.DEVICE_NOT_SEEN,
        K.DEVICE_OFFLINE,
        K.DEVICE_UNUSABLE,
        K.DEVICE_TAMPERED,
        K.READER_NOT_SECURE,
        K.READERS_OFFLINE,
        K.CAMERA_UNREACHABLE,
        K.CAMERA_REFUSED,
        K.CAMERA_STALLED,
        K.CAMERA_DISK_FAILED,
        K.CAMERA_NEVER_SEEN,
        K.STORE_FAILING,
        K.CENTRAL_OFFLINE,
        K.WEBHOOK_DISABLED,
        K.RECORDS_REFUSED,
    }
)
"""Kinds whose beginning and end are recorded elsewhere, with more detail than is known here."""
log = structlog.get_logger(__name__)

Key = tuple[str, ...]
_NAME = "problems.json"
_KEEP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """A problem as it was last seen, when it was first seen (monotonic seconds), and whether an event tells of it."""

    problem: Problem
    first_at: float
    told: bool = False


class ProblemWatch:
    """All problems of the site. `now` may be called at any time."""

    def __init__(
        self,
        *,
        state: Callable[[], SiteState],
        refresh: Callable[[], Awaitable[None]],
        changes: Changes,
        clock: Clock,
        tell: Callable[[Event], None],
        begins: BeginsFile,
    ) -> None:
        """Keep the collaborators.

        Args:
            state: returns the present state of the site's parts.
            refresh: reads those parts of the state that need a query; awaited before each look.
            changes: bumped when the site's state changes, and here after an acknowledgement.
            clock: wall and monotonic time.
            tell: records an event.
            begins: keeps the beginnings of problems over a restart.
        """
        self._refresh = refresh
        self._state = state
        self._changes = changes
        self._clock = clock
        self._wall_times = WallTimes(clock)
        self._tell = tell
        self._begins = begins
        self._begun: dict[tuple[str, ...], int] = {}
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._acknowledged: dict[tuple[str, ...], Acknowledgement] = {}
        self._recalls_until = float("-inf")

    def now(self) -> Verdict:
        """Return the verdict, with each problem's beginning and acknowledgement."""
        found, now = verdict(self._state()), self._clock.monotonic()
        problems = []
        for problem in found.problems:
            seen = self._seen.get(problem.key)
            since = problem.since or self._wall_times.of(now if seen is None else seen.first_at)
            since = min(since, self._begun.get(problem.key, since))
            problems.append(replace(problem, since=since, acknowledged=self._acknowledged.get(problem.key)))
        return replace(found, problems=tuple(problems))

    def acknowledge(self, key: tuple[str, ...], *, by: str, silent_seconds: float = 0.0) -> None:
        """Acknowledge a problem until it is over, and record that as an event.

        `silent_seconds`: for how long nobody is called for it; what somebody else has asked for stays. Raises
        NotFoundError if the problem is over, CommandRefused if somebody knows of it and no silence is asked for.
        """
        problem = next((one for one in self.now().problems if one.key == key), None)
        if problem is None:
            raise NotFoundError(text("refused.problem_over"))
        if problem.acknowledged is not None and not silent_seconds:
            raise CommandRefused(text("refused.problem_known", who=problem.acknowledged.by))
        stamp = self._clock.wall().micros
        until = stamp + int(silent_seconds * 1_000_000) if silent_seconds else 0
        if problem.acknowledged is not None:
            until = max(until, problem.acknowledged.silent_until)
        self._acknowledged[key] = Acknowledgement(by, stamp, until)
        self._record(
            EventKind.PROBLEM_ACKNOWLEDGED,
            text("event.problem_known", who=by, why=problem.text),
            problem,
            by=by,
            part=problem.part.value,
            id=problem.id,
            silent_until=until,
        )
        self._changes.bump()

    async def recall(self, newest_first: Iterable[RecordedEvent]) -> None:
        """Restore beginnings after a restart, and acknowledgements from their events, given newest first."""
        self._begun = await self._begins.read()
        self._recalls_until = self._clock.monotonic() + _RECALL_SECONDS
        for event in newest_first:
            data = json.loads(event.data)
            key = (data["problem"], data["part"], data["id"], data["subject"])
            said = Acknowledgement(data["by"], event.date_at, data["silent_until"])
            self._acknowledged.setdefault(key, said)

    async def run(self) -> None:
        """Look after each change, at most once a second and at least every two, until cancelled."""
        while True:
            version = self._changes.version
            await self._refresh()
            self.look()
            await self._begins.keep(self._begun | {key: seen.problem.since for key, seen in self._seen.items()})
            await asyncio.sleep(_LOOK_SECONDS)
            await self._changes.beyond(version, within=_LONGEST_LOOK_SECONDS - _LOOK_SECONDS)

    def look(self) -> None:
        """Record events for problems that have begun or ended since the last look."""
        now = self._clock.monotonic()
        problems = {problem.key: problem for problem in self.now().problems}
        for key in self._seen.keys() - problems.keys():
            over = self._seen.pop(key)
            self._acknowledged.pop(key, None)
            self._begun.pop(key, None)
            if over.told:
                self._record(EventKind.PROBLEM_ENDED, text("event.trouble_ended", why=over.problem.text), over.problem)
        for key, problem in problems.items():
            seen = self._seen.get(key)
            first_at = now if seen is None else seen.first_at
            told = seen is not None and seen.told
            if not told and problem.kind not in _TOLD_BY_OWNER and now >= first_at + _LASTS_SECONDS:
                self._record(EventKind.PROBLEM_BEGAN, problem.text, problem)
                told = True
            self._seen[key] = _Seen(problem, first_at, told)

        if now > self._recalls_until:
            self._acknowledged = {key: said for key, said in self._acknowledged.items() if key in problems}
            self._begun = {key: since for key, since in self._begun.items() if key in problems}

    def _record(self, kind: EventKind, said: Words, problem: Problem, **more: Scalar) -> None:
        stamp = self._clock.wall()
        self._tell(
            Event(
                kind=kind,
                date_at=stamp.micros,
                clock_trusted=stamp.trusted,
                text=said,
                device_id=int(problem.id) if problem.part in {SitePart.DEVICE, SitePart.CAMERA} else 0,
                lane_id=problem.id if problem.part is SitePart.LANE else "",
                data={"problem": problem.kind.value, "subject": problem.subject, **more},
            )
        )


class BeginsFile:
    """The beginnings of the present problems in the data folder, written once a minute at most."""

    def __init__(self, *, folder: Path, clock: Clock) -> None:
        """Keep the collaborators."""
        self._path = folder / _NAME
        self._clock = clock
        self._kept: dict[Key, WallMicros] = {}
        self._kept_at = float("-inf")

    async def read(self) -> dict[Key, WallMicros]:
        """Return what the last run has kept, nothing if there is none or it cannot be read."""
        try:
            text = await asyncio.to_thread(self._path.read_text, "utf-8")
            self._kept = {tuple(map(str, key)): int(since) for key, since in json.loads(text)}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            log.warning("problem_begins_not_read", error=str(error))
        return dict(self._kept)

    async def keep(self, begins: Mapping[Key, WallMicros]) -> None:
        """Keep the beginnings if they have changed and it is time. If the disk refuses, it is tried again later."""
        now = self._clock.monotonic()
        if begins == self._kept or now < self._kept_at + _KEEP_SECONDS:
            return
        self._kept_at = now
        text = json.dumps(list(begins.items()))
        try:
            await asyncio.to_thread(write_durably, self._path, text.encode())
        except OSError as error:
            log.debug("problem_begins_not_kept", error=str(error))
        else:
            self._kept = dict(begins)
