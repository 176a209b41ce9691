"""Pull of central's access cards, devices and cameras into the store. Only changed records are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar, get_args

import structlog

from gateway.central.client.answers import CentralFailed, SignInRefused
from gateway.central.client.lists import MODEST, ListReader, PageSize, Tally, is_large, read_waiting, waiting_text
from gateway.central.client.not_found import doubt
from gateway.central.pull.absence_proof import AskedRecords, RequestsById
from gateway.central.pull.cards import CardPull, CardsPulled, OnProgress
from gateway.central.push.upstream import Upstream
from gateway.domain.errors import CentralRefused
from gateway.domain.events import Event, EventKind
from gateway.domain.record_match import lookup_of
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.runtime.clock import Stamp
from gateway.store import Changes, Entry
from gateway.store.cards.cards import Cards
from gateway.store.cards.rows import Notes
from gateway.store.outbox.record_kinds import record_text
from gateway.texts import Text, text

log = structlog.get_logger(__name__)

Part = Literal["access cards", "devices", "cameras"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

_NAME = "to_fetch_anew"
_MOST_DOUBTFUL = 5

Noun = Literal["device", "camera"]


class Refresh:
    """The lists that an ordered full fetch has not written yet.

    The methods raise StoreError, and have then changed nothing.
    """

    def __init__(self, *, cards: Cards, notes: Notes, changes: Changes) -> None:
        self._cards = cards
        self._notes = notes
        self._changes = changes
        self._left: tuple[Part, ...] = ()
        self._doubtful: Counter[Part] = Counter()

    @property
    def left(self) -> tuple[Part, ...]:
        """Parts still to be fetched, in order."""
        return self._left

    async def recall(self) -> None:
        """Load the lists that were left when the gateway last stopped; all of them if the cards were lost."""
        if self._cards.lost:
            await self.ask()
        noted = (await self._notes.remembered(_NAME) or "").split(",")
        self._left = tuple(part for part in PARTS if part in noted or part in self._left)

    async def ask(self) -> None:
        """Order a full fetch of every list."""
        await self._keep(PARTS)
        self._doubtful.clear()

    async def fetched(self, part: Part, *, problem: str = "") -> None:
        """Note that a list was walked. With a `problem` it is not believed, and is walked again a few times at most."""
        if problem and self._doubtful[part] + 1 < _MOST_DOUBTFUL:
            self._doubtful[part] += 1
            return
        await self._keep(tuple(other for other in self._left if other != part))

    async def _keep(self, left: tuple[Part, ...]) -> None:
        await self._notes.remember(_NAME, ",".join(left))
        self._left = left
        self._changes.bump()


@dataclass(frozen=True, slots=True)
class RecordsPulled:
    """Result of a pull of the devices or cameras.

    Attributes:
        listed: number of records that central listed.
        held_back: number of records of a large removal that stay until the next complete pull misses them too.
        newly_held_back: whether holding back began with this pull.
        problem: why the list could not be believed, "" when it could.
    """

    listed: int = 0
    held_back: int = 0
    newly_held_back: bool = False
    problem: str = ""


class RecordPull:
    """Pull of the devices, or of the cameras.

    Changed records are stored. A record that two complete pulls in a row do not find is removed, unless central still
    has it when asked for it by id. A large removal is remembered across a restart, and is reported.
    """

    def __init__(self, noun: Noun, upstream: Upstream) -> None:
        """Start with nothing missing."""
        store = upstream.store
        self._noun = noun
        self._records = store.devices if noun == "device" else store.cameras
        self._size = PageSize(MODEST)
        self._client = upstream.client
        self._by_id = RequestsById(client=upstream.client, path=f"/v1/{noun}", names=(noun,))
        self._pending_writes = store.pending_writes
        self._notes = store.notes
        self._clock = upstream.clock
        self._missing: frozenset[int] = frozenset()
        self._pending = f"pending_removal_{noun}"

    async def pull(self, *, anew: bool) -> RecordsPulled:
        """Pull the list. Raises what the client and the store raise; what was stored until then stays."""
        written = self._pending_writes.pull_begins(self._noun)
        known = {item.id: item.record for item in await self._records.all()}
        lookup = lookup_of(self._noun)
        tally = Tally(lookup.resource)
        reader = ListReader(client=self._client, lookup=lookup, tally=tally, size=self._size)
        async for page in reader.pages():
            await self._take(page.records, known=known, written=written, anew=anew)
        if not tally.reached_end:
            return RecordsPulled(listed=len(tally.ids), problem=tally.problem)
        centrals = {found for found, record in known.items() if record != "{}" and found < FIRST_PROVISIONAL_ID}
        missing = frozenset(centrals - tally.ids - written)
        waited = read_waiting(await self._notes.remembered(self._pending) or "")
        due = missing & (self._missing | waited)
        large = is_large(known=len(centrals), missing=len(missing))
        waiting = missing - due if large else frozenset()
        self._missing = missing
        asked = await self._remove(due, tally=tally)
        problem = ""
        if asked.there:
            await self._take(dict(asked.there), known=known, written=written, anew=anew)
            problem = f"{self._noun}s: {len(asked.there)} that central still has are not on its list"
        if waiting != waited:
            await self._notes.remember(self._pending, waiting_text(waiting))
        return RecordsPulled(
            listed=len(tally.ids),
            held_back=len(waiting),
            newly_held_back=bool(waiting) and not waited,
            problem=tally.problem or problem,
        )

    async def _take(
        self, records: Mapping[int, JsonObject], *, known: dict[int, str], written: set[int], anew: bool
    ) -> None:
        arriving = await self._pending_writes.arriving(self._noun, list(records))
        changed = {
            found: record
            for found, record in records.items()
            if (record_text(record) != known.get(found) or anew)
            and found not in written
            and (found in known or not arriving.is_own(record))
        }
        if changed:
            await self._records.pulled(changed, removed=(), now=self._clock.wall().micros)

    async def _remove(self, due: frozenset[int], *, tally: Tally) -> AskedRecords:
        """Remove records that central no longer has; return what it said about them when asked for them by id.

        If the list contradicts itself, a record is removed only if central says that it does not have that record.
        """
        if not due:
            return AskedRecords()
        asked = await self._by_id.ask_some(due, listed=sorted(tally.ids))
        proven = asked.gone
        if not tally.problem and not asked.there:
            proven |= asked.unsaid | asked.unasked
        if proven:
            await self._records.pulled({}, removed=proven, now=self._clock.wall().micros)
        return asked


_P = TypeVar("_P", CardsPulled, RecordsPulled)


@dataclass(frozen=True, slots=True)
class PullProblem:
    """Reason why a list was missed or could not be believed.

    Attributes:
        text: the reason in one sentence.
        operation: the operation that central refused, "" for another reason.
        at_sign_in: whether central refused to sign the account in.
    """

    text: str
    operation: str = ""
    at_sign_in: bool = False

    @classmethod
    def of(cls, error: CentralRefused) -> PullProblem:
        """Return the problem that central refused a list."""
        return cls(str(error), operation=error.operation, at_sign_in=isinstance(error, SignInRefused))


@dataclass(frozen=True, slots=True)
class PullReport:
    """Result of the last pull.

    Attributes:
        at: when it ended.
        devices: number of devices that central listed; if the list is missed, the number of the last time.
        cameras: the same for cameras.
        devices_held_back: number of devices of a large removal that stay until the next complete pull misses them too.
        cameras_held_back: the same for cameras.
        cards: the result for the cards.
        anew: whether the pull was part of an ordered full fetch.
        missed: lists that central did not give this time.
        never: those of them that central has not given since the start.
        problems: why lists were missed or could not be believed.
    """

    at: Stamp
    devices: int = 0
    cameras: int = 0
    devices_held_back: int = 0
    cameras_held_back: int = 0
    cards: CardsPulled = field(default_factory=CardsPulled)
    anew: bool = False
    missed: frozenset[Part] = frozenset()
    never: frozenset[Part] = frozenset()
    problems: tuple[PullProblem, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """True when the pull changed no card, and none waits for the next list."""
        cards = self.cards
        changed = cards.added or cards.changed or cards.removed or cards.held_back
        return not (changed or self.anew or self.problems)


@dataclass(frozen=True, slots=True)
class PullProgress:
    """Progress of a pull: its present list, how many records came, and how many there are (None while unknown)."""

    part: str
    received: int = 0
    count: int | None = None


class DownSync:
    """Pull of all lists of central, one after the other. A list that central refuses does not stop the others."""

    def __init__(self, upstream: Upstream) -> None:
        self._client = upstream.client
        self._journal = upstream.store.journal
        self._changes = upstream.store.changes
        self._clock = upstream.clock
        self.card_pull = CardPull(upstream)
        self.restore = upstream.restore
        self._devices = RecordPull("device", upstream)
        self._cameras = RecordPull("camera", upstream)
        self.anew = Refresh(cards=upstream.store.cards, notes=upstream.store.notes, changes=upstream.store.changes)
        self._report: PullReport | None = None
        self._doubted = False
        self._progress: PullProgress | None = None
        self._pulls_anew = False

    @property
    def report(self) -> PullReport | None:
        """The last pull that reached its end; None before the first."""
        return self._report

    @property
    def progress(self) -> PullProgress | None:
        """Progress of the pull under way; None between pulls."""
        return self._progress

    @property
    def refreshing(self) -> bool:
        """True while a full fetch runs or is due; it ends when the report shows the result."""
        return self._pulls_anew or bool(self.anew.left)

    async def pull(self) -> PullReport:
        """Pull once, cards first, so that revoked rights take effect before anything else.

        If a full fetch of a list was ordered, every record of it is written, changed or not. Raises CentralUnavailable
        when central cannot be reached, StoreError when nothing can be written.
        """
        try:
            return await self._pull()
        finally:
            self._progress = None
            self._pulls_anew = False

    async def fetch_cards(self, card_ids: frozenset[int]) -> bool:
        """Fetch single cards beside a pull; return False if only a pull can tell how they are.

        Raises CentralUnavailable, CentralRefused, StoreError.
        """
        pulled = await self.card_pull.fetch(card_ids)
        if pulled is not None:
            await self._record_cards(pulled)
        return pulled is not None

    async def _record_cards(self, cards: CardsPulled) -> None:
        if cards.added or cards.changed or cards.removed:
            said = text(
                "event.cards_changed", added=str(cards.added), changed=str(cards.changed), removed=str(cards.removed)
            )
            await self._record(EventKind.CARDS_CHANGED, self._clock.wall(), said)
            self._changes.bump()

    async def _pull(self) -> PullReport:
        missed: dict[Part, PullProblem] = {}
        await self.restore.check()  # first: cards made at this site must not be removed because central lost them
        anew = self._pulls_anew = bool(self.anew.left)
        cards = await self._part(
            "access cards", lambda anew: self.card_pull.pull(self._progress_of("access cards"), anew=anew), missed
        )
        devices = await self._records("device", "devices", self._devices, missed)
        cameras = await self._records("camera", "cameras", self._cameras, missed)
        doubted = [PullProblem(part.problem) for part in (devices, cameras, cards) if part is not None and part.problem]
        problems = tuple(dict.fromkeys((*missed.values(), *doubted)))
        before = self._report or PullReport(at=self._clock.wall(), never=frozenset(PARTS))
        report = PullReport(
            at=self._clock.wall(),
            devices=devices.listed if devices else before.devices,
            cameras=cameras.listed if cameras else before.cameras,
            devices_held_back=devices.held_back if devices else before.devices_held_back,
            cameras_held_back=cameras.held_back if cameras else before.cameras_held_back,
            cards=cards or before.cards.unchanged(),
            anew=anew,
            missed=frozenset(missed),
            never=before.never.intersection(missed),
            problems=problems,
        )
        if problems and (self._report is None or self._report.problems != report.problems):
            log.warning("pull_incomplete", problems=[problem.text for problem in problems])
        self._report = report
        await self._record_changes(report.cards)
        return report

    async def _part(
        self, part: Part, pull: Callable[[bool], Awaitable[_P]], missed: dict[Part, PullProblem]
    ) -> _P | None:
        anew = part in self.anew.left
        try:
            pulled = await pull(anew)
        except CentralFailed as error:
            missed[part] = PullProblem(str(error))
            return None
        except CentralRefused as error:
            missed[part] = PullProblem.of(error)
            if anew and error.status and await doubt(self._client, error) is None:
                await self.anew.fetched(part)  # this account may not see the list; the report says so
            return None
        if anew:
            await self.anew.fetched(part, problem=pulled.problem)
        return pulled

    def _progress_of(self, part: str) -> OnProgress:
        self._progress = PullProgress(part)

        def on_progress(received: int, count: int | None) -> None:
            self._progress = PullProgress(part, received, count)
            self._changes.bump()

        return on_progress

    async def _records(
        self, noun: Noun, part: Part, pull: RecordPull, missed: dict[Part, PullProblem]
    ) -> RecordsPulled | None:
        self._progress_of(part)
        pulled = await self._part(part, lambda anew: pull.pull(anew=anew), missed)
        if pulled is not None and pulled.newly_held_back:
            said = text(f"event.list_shorter.{noun}", count=str(pulled.held_back))
            await self._record(EventKind.SWEEP_SUSPENDED, self._clock.wall(), said)
        return pulled

    async def _record_changes(self, cards: CardsPulled) -> None:
        """Record what a technician should know of this pull."""
        await self._record_cards(cards)
        stamp = self._clock.wall()
        if cards.newly_held_back:
            said = text("event.list_shorter.card", count=str(cards.held_back))
            await self._record(EventKind.SWEEP_SUSPENDED, stamp, said)
        if cards.problem and not self._doubted:
            said = text("event.list_doubted", why=cards.problem)
            await self._record(EventKind.SWEEP_SUSPENDED, stamp, said)
        self._doubted = bool(cards.problem)

    async def _record(self, kind: EventKind, stamp: Stamp, said: Text) -> None:
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said)
        await self._journal.record(Entry(events=(event,)))
