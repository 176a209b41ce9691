"""The outbox on its way up: at least once, in order per record, the same key over all tries of a row.

Reactions to a try that fails:
- central cannot be reached, or refuses the account: everything waits, and goes on by itself;
- central failed with this row: the row waits, others go on;
- central refuses the row: it is parked for a person, with central's words, and later rows of its record behind it;
- nobody knows whether a create was carried out: it is looked for before it is made again, see `lookups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import takewhile

import structlog

from gateway.clock import Clock
from gateway.domain.conflicts import READS, Settled, settle
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import Effect
from gateway.store import Entry, OutboxRow, Store
from gateway.supervision import Backoff
from gateway.sync.answers import CentralDenied, CentralFailed, JsonObject
from gateway.sync.central import CentralClient
from gateway.sync.convoy import Convoy, goes_along
from gateway.sync.field_map import CardFieldMap
from gateway.sync.lookups import Found, Looks, Lookups, NotThere, NotYet, Sought, Unclear, sought_in
from gateway.sync.not_found import NOT_FOUND, doubt
from gateway.sync.shipments import Shipment, answered_record, given_id, shipment_of
from gateway.sync.site_cards import KIND as CARD
from gateway.sync.site_cards import SiteCards
from gateway.sync.sparing import Sparing

log = structlog.get_logger(__name__)

_BATCH = 400
_SINGLY = 50  # then it is seen again what is urgent
_LONG_AWAY = 3  # failures in a row after which central counts as away
_IDLE_SECONDS = 60.0
_PARKED_TOLD = 20  # an hour; the outbox lists them all
_LONGEST_TOLD = 1000


@dataclass(frozen=True, slots=True)
class Turn:
    """What follows a turn of sending: seconds to wait, and whether a new row ends the waiting."""

    wait: float
    new_rows_count: bool = True


class OutboxSender:
    """Sends what waits in the store's outbox.

    `row_backoff` spaces the tries of one row, `away_backoff` those of central as a whole. Their times are wall time in
    the store; a wall clock that stepped back does not keep rows waiting longer than the longest backoff. For `may_take`
    seconds central may still carry out a write whose answer was lost.
    """

    def __init__(
        self,
        *,
        client: CentralClient,
        store: Store,
        clock: Clock,
        row_backoff: Backoff | None = None,
        away_backoff: Backoff | None = None,
        may_take: float = 60.0,
        zone: tzinfo = UTC,
        fields: CardFieldMap | None = None,
        card_renamed: Callable[[int, int], None] | None = None,
    ) -> None:
        """`card_renamed` hears of a card that has got central's id in place of the site's."""
        self._card_renamed = card_renamed
        self._cards = SiteCards(store=store, clock=clock, zone=zone, fields=fields)
        self._client = client
        self._store = store
        self._clock = clock
        self._row_backoff = row_backoff or Backoff(first=2.0, longest=300.0)
        self._away_backoff = away_backoff or Backoff(first=0.5, longest=15.0)
        self._lookups = Lookups(client=client, store=store, looks=Looks(monotonic=clock.monotonic, may_take=may_take))
        self._failures = 0
        self._parked = Sparing(monotonic=clock.monotonic, most=_PARKED_TOLD)

    async def start_afresh(self) -> None:
        """Nothing that waits from before a start has to wait any longer."""
        await self._store.outbox.retry_now()

    async def send_due(self) -> Turn:
        """Send what is due, oldest first, until there is no more or central does not take it.

        Raises StoreError when the outcome of a row cannot be kept; that row is sent again, with its key.
        """
        rows = await self._store.outbox.due(now=self._clock.wall().micros, limit=_BATCH)
        if not rows:
            return Turn(await self._until_due())
        self._lookups.begin_turn(sought for row in rows if (sought := sought_in(row)) is not None)
        along = [] if self._failures else list(takewhile(goes_along, rows))
        if along:
            well = await self._convoy(along).send()
        else:
            well = await self._send_singly(rows)
        return Turn(0.0) if well else Turn(self._away_backoff.wait(self._failures), new_rows_count=False)

    def _convoy(self, rows: list[OutboxRow]) -> Convoy:
        return Convoy(
            client=self._client,
            store=self._store,
            clock=self._clock,
            rows=rows,
            park=self._park,
            missed=self._missed,
            through=self._through,
        )

    async def _send_singly(self, rows: Sequence[OutboxRow]) -> bool:
        """One row after the other, until others may go together. After a failure the first finds out how central is."""
        for number, row in enumerate(rows[:_SINGLY]):
            if number and goes_along(row):
                break
            if not await self._send(row):
                return False
        return True

    async def _until_due(self) -> float:
        soonest = await self._store.outbox.next_due()
        if soonest is None:
            return _IDLE_SECONDS
        wait = (soonest - self._clock.wall().micros) / 1_000_000
        if wait > self._row_backoff.longest:
            await self._store.outbox.retry_now()
            return 0.0
        return min(max(wait, 0.0), _IDLE_SECONDS)

    async def _send(self, row: OutboxRow) -> bool:
        """Try one row and keep the outcome; whether the next one may be tried at once."""
        shipment = await self._shipment(row)
        if isinstance(shipment, str):
            await self._park(row, shipment)
            return True
        try:
            if row.begun and not await self._is_to_go(row, shipment):
                return True
        except (CentralUnavailable, CentralDenied) as error:
            return await self._failed(row, error)
        try:
            settled = await self._settled(row, shipment)
            if settled is None or not await self._store.outbox.begin(settled[0]):
                return True
            row, shipment = settled
            operation = shipment.operation
            answer = await self._client.call(operation.method, operation.path, shipment.body, key=row.key)
        except (CentralUnavailable, CentralRefused) as error:
            return await self._missed(row, shipment, error)
        await self._delivered(row, shipment, answer)
        await self._through()
        return True

    async def _missed(self, row: OutboxRow, shipment: Shipment, error: CentralUnavailable | CentralRefused) -> bool:
        """Keep that a row was not taken; whether the next one may be tried at once."""
        if isinstance(error, CentralUnavailable | CentralDenied):
            sent = isinstance(error, CentralUnavailable) and error.sent
            return await self._failed(row, error, at_central=sent)
        if (doubtful := await doubt(self._client, error, of=shipment.operation)) is not None:
            return await self._failed(row, doubtful, at_central=False)
        await self._refused(row, shipment, error)
        await self._through()
        return True

    async def _is_to_go(self, row: OutboxRow, shipment: Shipment) -> bool:
        """Whether a row that may have reached central is sent again now; otherwise it has found its end, or waits."""
        if shipment.operation.effect is not Effect.CREATE:
            return True  # carried out twice it comes to the same
        if row.taken_as is not None:
            await self._delivered(row, shipment, {"success": True, "id": row.taken_as})
            return False
        told = await self._lookups.judge(Sought(row, shipment.operation, shipment.body))
        match told:
            case Found():
                await self._delivered(row, shipment, told.record)
            case NotYet():
                wait = told.wait or self._row_backoff.wait(row.tries + 1)
                next_at = self._clock.wall().micros + int(wait * 1_000_000)
                await self._store.unknown.look_later(row, reason=told.reason, next_at=next_at)
            case Unclear():
                await self._ask_a_person(row, told.reason)
            case NotThere():
                return True
        return False

    async def _shipment(self, row: OutboxRow) -> Shipment | str:
        """The operation for a row and its body with central's id, or why there is none."""
        shipment = shipment_of(row)
        if isinstance(shipment, str) or shipment.operation.effect is Effect.CREATE:
            return shipment
        central_id = await self._store.held.central_id(row.kind, row.record_id)
        if central_id is None:
            return "central has never got its record"
        return replace(shipment, body={**shipment.body, "id": central_id})

    async def _settled(self, row: OutboxRow, shipment: Shipment) -> tuple[OutboxRow, Shipment] | None:
        """The row as it is to go up once central's record was looked at; None when nothing of it is left.

        A change that waited is compared with what central has now: see `gateway.domain.conflicts`.
        """
        base = await self._store.bases.base(row)
        if not base:
            return row, shipment
        theirs = await self._at_central(shipment)
        if theirs is None:
            return row, shipment
        settled = settle(shipment.operation, shipment.body, base, theirs)
        if settled.body == shipment.body and not settled.conflicts:
            return row, shipment
        if settled.conflicts:
            await self._tell_conflicts(row, settled)
        async with self._store.cards.turn:
            now = self._clock.wall().micros
            left = await self._store.bases.settled(row, settled, theirs, now=now)
            if row.kind == CARD:
                await self._cards.settle(shipment.operation, row.record_id, {**theirs, "id": row.record_id})
        return None if left is None else (left, replace(shipment, body=settled.body))

    async def _at_central(self, shipment: Shipment) -> JsonObject | None:
        """Central's record of a change as it is now; None when it is not to be had by this account.

        Raises what the client raises, CentralRefused when central has no such record.
        """
        operation = shipment.operation
        try:
            answer = await self._client.call("POST", READS[operation.kind], {"id": shipment.body["id"]})
        except CentralRefused as error:
            if error.status in (0, NOT_FOUND):
                raise
            return None
        return answered_record(answer, operation.resources)

    async def _tell_conflicts(self, row: OutboxRow, settled: Settled) -> None:
        stamp = self._clock.wall()
        said = "; ".join(conflict.sentence() for conflict in settled.conflicts)
        event = Event(
            kind=EventKind.CHANGED_ON_BOTH_SIDES,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"{row.kind} {row.record_id} was changed here and at central: {said}"[:_LONGEST_TOLD],
            data={
                "kind": row.kind,
                "record_id": row.record_id,
                "fields": ", ".join(conflict.field for conflict in settled.conflicts),
                "centrals_count": ", ".join(item.field for item in settled.conflicts if item.centrals_counts),
            },
        )
        await self._store.journal.record(Entry(events=(event,)))

    async def _delivered(self, row: OutboxRow, shipment: Shipment, answer: JsonObject) -> None:
        operation = shipment.operation
        record = answered_record(answer, operation.resources)
        async with self._store.cards.turn:
            known = await self._store.outbox.delivered(
                row, central_id=given_id(answer, operation.resources), record=record, now=self._clock.wall().micros
            )
            if row.kind == CARD:
                await self._cards.settle(operation, known, record, formerly=row.record_id)
                if known != row.record_id and self._card_renamed is not None:
                    self._card_renamed(row.record_id, known)

    async def _refused(self, row: OutboxRow, shipment: Shipment, error: CentralRefused) -> None:
        """A record that central has no more is nobody's to change; anything else waits for a person."""
        effect = shipment.operation.effect
        if error.status != NOT_FOUND or effect is Effect.CREATE:
            await self._park(row, str(error))
        elif effect is Effect.DELETE:
            await self._delivered(row, shipment, {})
        else:
            log.warning("record_gone_at_central", kind=row.kind, record_id=row.record_id)
            async with self._store.cards.turn:
                await self._store.outbox.drop(row)
                if row.kind == CARD:
                    await self._cards.forget(row.record_id)
            await self._tell_dropped(row, str(error))

    async def _failed(
        self, row: OutboxRow, error: CentralUnavailable | CentralDenied, *, at_central: bool = True
    ) -> bool:
        self._failures += 1
        if self._failures == 1 and isinstance(error, CentralDenied | CentralFailed):
            log.warning("outbox_held_up", kind=row.kind, record_id=row.record_id, error=str(error))
        next_at = self._clock.wall().micros + int(self._row_backoff.wait(row.tries + 1) * 1_000_000)
        await self._store.outbox.failed(row, error=str(error), next_at=next_at, at_central=at_central)
        return isinstance(error, CentralFailed) and self._failures < _LONG_AWAY

    async def _tell_dropped(self, row: OutboxRow, reason: str) -> None:
        await self._tell(row, f"{row.kind} {row.record_id} was changed here, but central has it no more: {reason}")

    async def _park(self, row: OutboxRow, reason: str) -> None:
        if not await self._store.outbox.park(row, error=reason):
            return
        await self._tell_parked(row, reason)

    async def _ask_a_person(self, row: OutboxRow, reason: str) -> None:
        """It is neither made again, which might double it, nor taken for delivered, which might lose it."""
        if await self._store.unknown.leave_to_a_person(row, reason=f"it may be at central: {reason}"):
            await self._tell_parked(row, f"it is not known whether central has it: {reason}")

    async def _tell_parked(self, row: OutboxRow, reason: str) -> None:
        log.warning("record_parked", kind=row.kind, record_id=row.record_id, error=reason)
        untold = self._parked.turn()
        if untold is not None:
            more = f"; {untold} more were refused since one was told last" if untold else ""
            await self._tell(row, f"{row.kind} {row.record_id} waits for a person: {reason}{more}")

    async def _tell(self, row: OutboxRow, text: str) -> None:
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.RECORD_PARKED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=text,
            data={"outbox_id": row.id, "kind": row.kind, "record_id": row.record_id},
        )
        await self._store.journal.record(Entry(events=(event,)))

    async def _through(self) -> None:
        """Central answers; after a long absence the rows that wait out a backoff go at once and in order."""
        was_away, self._failures = self._failures >= _LONG_AWAY, 0
        if was_away:
            await self._store.outbox.retry_now(files=False)
