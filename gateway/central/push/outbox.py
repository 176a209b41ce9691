"""The outbox on its way up: at least once, in order per record, the same key over all tries of a row.

Reactions to a try that fails:
- central cannot be reached, or refuses the account: everything waits, and goes on by itself;
- central failed with this row: the row waits, others go on; where it fails with every row of an operation, or does not
  permit it, that operation pauses, and nothing else does;
- central refuses the row: it is parked for a person, with central's words, and later rows of its record behind it;
- nobody knows whether a create was carried out: it is looked for before it is made again, see `lookups`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import takewhile

import structlog

from gateway.central.client.answers import CentralDenied, CentralFailed, JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.pull.field_map import CardFieldMap
from gateway.central.push.batch_upload import BatchUpload, goes_along
from gateway.central.push.events import OutboxEvents
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.paused_operations import PausedOperations, action_of
from gateway.central.push.requests import DeliveryRequest, answered_record, delivery_request, given_id
from gateway.central.push.unknown_outcomes import (
    ASK_AFTER,
    Found,
    Looks,
    NotThere,
    NotYet,
    OutcomeSearch,
    Sought,
    Unclear,
)
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.conflicts import READS, settle
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import CARD_CREATE, WRITES, Effect, WriteOperation
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff
from gateway.store import OutboxRow, Resolved, Store

log = structlog.get_logger(__name__)

_BATCH = 400
_SINGLY = 50  # then it is seen again what is urgent
_LONG_AWAY = 3  # failures in a row after which central counts as away
_IDLE_SECONDS = 60.0


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
        ask_after: float = ASK_AFTER,
        newest: NewestIds | None = None,
    ) -> None:
        """`card_renamed` hears of a card that has got central's id in place of the site's.

        `ask_after`: seconds after which a person is asked about a row of unknown outcome that looking does not settle.
        """
        self._newest = newest or NewestIds(client=client, clock=clock)
        self._card_renamed = card_renamed
        self._cards = SiteCards(store=store, clock=clock, zone=zone, fields=fields)
        self._client = client
        self._store = store
        self._clock = clock
        self._row_backoff = row_backoff or Backoff(first=2.0, longest=300.0)
        looks = Looks(monotonic=clock.monotonic, may_take=may_take, ask_after=ask_after)
        self._longest = max(self._row_backoff.longest, looks.longest)
        self._away_backoff = away_backoff or Backoff(first=0.5, longest=15.0)
        self._lookups = OutcomeSearch(
            client=client, store=store, clock=clock, looks=looks, newest=self._newest, may_take=may_take
        )
        self._failures = 0
        self._is_away = False  # as this turn found
        self._paused = PausedOperations(monotonic=clock.monotonic, failing_backoff=self._away_backoff)
        self._news = OutboxEvents(store=store, clock=clock)

    @property
    def failing(self) -> tuple[str, ...]:
        """What central fails with again and again, a sentence each; what waits for that waits."""
        return self._paused.failing()

    async def start_afresh(self) -> None:
        """Nothing that waits from before a start has to wait any longer."""
        await self._store.outbox.retry_now()

    async def run(self, told: Callable[[Turn], Awaitable[None]]) -> None:
        """Send for as long as the gateway runs: again at once while rows are due, else when the next one is, or is new.

        What waited before the start is due at once. `told` hears of each turn. Raises StoreError.
        """
        await self.start_afresh()
        while True:
            version = self._store.changes.version
            turn = await self.send_due()
            await told(turn)
            if not turn.new_rows_count:
                await asyncio.sleep(turn.wait)
            elif turn.wait > 0:
                await self._store.changes.beyond(version, within=turn.wait)

    async def send_due(self) -> Turn:
        """Send what is due, oldest first, until there is no more or central does not take it.

        Raises StoreError when the outcome of a row cannot be kept; that row is sent again, with its key.
        """
        await self._cards.catch_up()
        now, without = self._clock.wall().micros, self._paused.now()
        rows = await self._store.outbox.due(now=now, limit=_BATCH, without=without)
        if not rows:
            return Turn(await self._until_due())
        self._is_away = False
        await self._lookups.begin_turn(rows)
        try:
            await self._newest.refresh(_creates(rows))
        except CentralUnavailable:
            self._failures += 1
            return Turn(self._away_backoff.wait(self._failures), new_rows_count=False)
        along = list(takewhile(self._goes_along, rows))
        if along:
            well = await self._convoy(along).send()
        else:
            well = await self._send_singly(rows)
        if well or not self._is_away:
            return Turn(0.0)
        return Turn(self._away_backoff.wait(max(self._failures, 1)), new_rows_count=False)

    def _goes_along(self, row: OutboxRow) -> bool:
        return not self._failures and goes_along(row) and not self._paused.is_doubtful(action_of(row))

    def _convoy(self, rows: list[OutboxRow]) -> BatchUpload:
        return BatchUpload(
            client=self._client,
            store=self._store,
            clock=self._clock,
            rows=rows,
            park=self._park,
            missed=self._missed,
            named=self._lookups.named,
            through=self._through,
            newest=self._newest,
        )

    async def _send_singly(self, rows: Sequence[OutboxRow]) -> bool:
        """One row after the other, until others may go together. After a failure the first finds out how central is."""
        for number, row in enumerate(rows[:_SINGLY]):
            if number and self._goes_along(row):
                break
            if not await self._send(row):
                return False
        return True

    async def _until_due(self) -> float:
        soonest = await self._store.outbox.next_due(without=self._paused.now())
        paused = self._paused.left()
        longest = _IDLE_SECONDS if paused is None else min(paused, _IDLE_SECONDS)
        if soonest is None:
            return longest
        now = self._clock.wall().micros
        if await self._store.outbox.bring_near(latest=now + int(self._longest * 1_000_000), files=False):
            return 0.0
        return min(max((soonest - now) / 1_000_000, 0.0), longest)

    async def _send(self, row: OutboxRow) -> bool:
        """Try one row and keep the outcome; whether the next one may be tried at once."""
        request = await self._request_of(row)
        if isinstance(request, Resolved):
            await self._cannot_go(row, request)
            return True
        try:
            if row.begun and not await self._is_to_go(row, request):
                return True
        except (CentralUnavailable, CentralDenied) as error:
            return await self._failed(row, error)
        try:
            settled = await self._settled(row, request)
            if settled is None or not await self._begin(settled[0]):
                return True
            row, request = settled
            operation = request.operation
            answer = await self._client.call(operation.method, operation.path, request.body, key=row.key)
        except (CentralUnavailable, CentralRefused) as error:
            return await self._missed(row, request, error)
        answer = await self._lookups.named(Sought(row, operation, request.body), answer)
        await self._delivered(row, request, answer)
        await self._through(row)
        return True

    async def _begin(self, row: OutboxRow) -> bool:
        return await self._store.outbox.begin(row, newest=self._newest.seen, begun_at=self._newest.now())

    async def _missed(
        self, row: OutboxRow, request: DeliveryRequest, error: CentralUnavailable | CentralRefused
    ) -> bool:
        """Keep that a row was not taken; whether the next one may be tried at once."""
        if isinstance(error, CentralDenied) and error.status:
            return await self._not_permitted(row, error)
        if isinstance(error, CentralUnavailable | CentralDenied):
            sent = isinstance(error, CentralUnavailable) and error.sent
            return await self._failed(row, error, at_central=sent)
        if (doubtful := await doubt(self._client, error, of=request.operation)) is not None:
            return await self._failed(row, doubtful, at_central=False)
        await self._refused(row, request, error)
        await self._through(row)
        return True

    async def _is_to_go(self, row: OutboxRow, request: DeliveryRequest) -> bool:
        """Whether a row that may have reached central is sent again now; otherwise it has found its end, or waits."""
        if request.operation.effect is not Effect.CREATE:
            return True  # carried out twice it comes to the same
        if row.taken_as is not None:
            await self._delivered(row, request, {"success": True, "id": row.taken_as})
            return False
        told = await self._lookups.judge(Sought(row, request.operation, request.body))
        match told:
            case Found():
                await self._delivered(row, request, told.record)
            case NotYet():
                next_at = self._clock.wall().micros + int(told.wait * 1_000_000)
                await self._store.unknown_outcomes.look_later(row, reason=told.reason, next_at=next_at)
            case Unclear():
                await self._ask_a_person(row, told.reason)
            case NotThere():
                return True
        return False

    async def _request_of(self, row: OutboxRow) -> DeliveryRequest | Resolved:
        """Build the request for a row with central's ids, or tell why it cannot go up (now, or ever)."""
        request = delivery_request(row)
        if isinstance(request, str):
            return Resolved({}, reason=request)
        resolved = await self._store.references.resolve(request.body)
        if resolved.reason:
            return resolved
        if request.operation.effect is Effect.CREATE:
            return replace(request, body=resolved.body)
        central_id = await self._store.pending_writes.central_id(row.kind, row.record_id)
        if central_id is None:
            return replace(resolved, reason="central has never got its record")
        return replace(request, body={**resolved.body, "id": central_id})

    async def _cannot_go(self, row: OutboxRow, resolved: Resolved) -> None:
        """Put a row off until the record that it names is at central, or park it when that will never be."""
        if resolved.waits_for is None:
            await self._park(row, resolved.reason)
            return
        next_at = self._clock.wall().micros + int(self._longest * 1_000_000)
        await self._store.references.waits(row.id, resolved, next_at=next_at)

    async def _settled(self, row: OutboxRow, request: DeliveryRequest) -> tuple[OutboxRow, DeliveryRequest] | None:
        """The row as it is to go up once central's record was looked at; None when nothing of it is left.

        A change that waited is compared with what central has now: see `gateway.domain.conflicts`.
        """
        base = await self._store.change_bases.base(row)
        if not base:
            return row, request
        theirs = await self._at_central(request)
        if theirs is None:
            return row, request
        base = (await self._store.references.resolve(base)).body
        settled = settle(request.operation, request.body, base, theirs)
        if settled.body == request.body and not settled.conflicts:
            return row, request
        if settled.conflicts:
            await self._news.conflicts(row, settled.conflicts)
        async with self._store.cards.turn:
            now = self._clock.wall().micros
            left = await self._store.change_bases.settled(row, settled, theirs, now=now)
            if row.kind == CARD:
                await self._cards.settle(request.operation, row.record_id, {**theirs, "id": row.record_id})
        return None if left is None else (left, replace(request, body=settled.body))

    async def _at_central(self, request: DeliveryRequest) -> JsonObject | None:
        """Central's record of a change as it is now; None when it is not to be had by this account.

        Raises what the client raises, CentralRefused when central has no such record.
        """
        operation = request.operation
        try:
            answer = await self._client.call("POST", READS[operation.kind], {"id": request.body["id"]})
        except CentralRefused as error:
            if error.status in (0, NOT_FOUND):
                raise
            return None
        return answered_record(answer, operation.resources)

    async def _delivered(self, row: OutboxRow, request: DeliveryRequest, answer: JsonObject) -> None:
        operation = request.operation
        record = answered_record(answer, operation.resources)
        central_id = given_id(answer, operation.resources)
        async with self._store.cards.turn:
            if operation is CARD_CREATE and central_id is not None:
                await self._cards.make_way(central_id, request.body, card_id=row.record_id)
            now = self._clock.wall()
            known = await self._store.outbox.delivered(
                row,
                central_id=central_id,
                record=record,
                now=now.micros,
                trusted=now.trusted,
            )
            if row.kind == CARD:
                await self._cards.settle(operation, known, record, formerly=row.record_id)
                if known != row.record_id and self._card_renamed is not None:
                    self._card_renamed(row.record_id, known)

    async def _refused(self, row: OutboxRow, request: DeliveryRequest, error: CentralRefused) -> None:
        """A record that central has no more is nobody's to change; anything else waits for a person."""
        effect = request.operation.effect
        if error.status != NOT_FOUND or effect is Effect.CREATE:
            await self._park(row, str(error))
        elif effect is Effect.DELETE:
            await self._delivered(row, request, {})
        else:
            log.warning("record_gone_at_central", kind=row.kind, record_id=row.record_id)
            async with self._store.cards.turn:
                await self._store.outbox.drop(row)
                if row.kind == CARD:
                    await self._cards.forget(row.record_id)
            await self._news.dropped(row, str(error))

    async def _not_permitted(self, row: OutboxRow, error: CentralDenied) -> bool:
        """The row is due as soon as its operation is tried again; the turn ends, for the rest of it may be the same."""
        if self._paused.denied(action_of(row)):
            log.warning("outbox_held_up", kind=row.kind, action=row.action, error=str(error))
        await self._store.outbox.failed(row, error=str(error), next_at=0, at_central=False)
        await self._answers()
        return False

    async def _failed(
        self, row: OutboxRow, error: CentralUnavailable | CentralDenied, *, at_central: bool = True
    ) -> bool:
        # A row is put off for long only by what central says of it; the line may be well again at any moment.
        backoff = self._row_backoff if isinstance(error, CentralFailed) else self._away_backoff
        next_at = self._clock.wall().micros + int(backoff.wait(row.tries + 1) * 1_000_000)
        await self._store.outbox.failed(row, error=str(error), next_at=next_at, at_central=at_central)
        if isinstance(error, CentralFailed):
            times = self._paused.failed(action_of(row), str(error))
            await self._answers()
        else:
            self._is_away = True
            times = self._failures = self._failures + 1
        if times == 1 and isinstance(error, CentralDenied | CentralFailed):
            log.warning("outbox_held_up", kind=row.kind, record_id=row.record_id, error=str(error))
        return not self._failures and action_of(row) not in self._paused.now()

    async def _park(self, row: OutboxRow, reason: str) -> None:
        if not await self._store.outbox.park(row, error=reason):
            return
        await self._news.parked(row, reason)

    async def _ask_a_person(self, row: OutboxRow, reason: str) -> None:
        """It is neither made again, which might double it, nor taken for delivered, which might lose it."""
        if await self._store.unknown_outcomes.leave_to_a_person(row, reason=f"it may be at central: {reason}"):
            await self._news.parked(row, f"it is not known whether central has it: {reason}")

    async def _through(self, row: OutboxRow) -> None:
        """Central took the row, or refused it for good: what waits for others like it may be tried again."""
        if row.action == "create":
            self._newest.heard(row.kind)
        had_paused = self._paused.went_through(action_of(row))
        if not await self._answers() and had_paused:
            await self._store.outbox.retry_now(files=False)

    async def _answers(self) -> bool:
        """Central answers; after a long absence the rows that wait out a backoff go at once, in order. Whether so."""
        was_away, self._failures = self._failures >= _LONG_AWAY, 0
        if was_away:
            await self._store.outbox.retry_now(files=False)
        return was_away


def _creates(rows: Sequence[OutboxRow]) -> Iterator[WriteOperation]:
    """The operations of rows that are about to make records."""
    for action in {action_of(row) for row in rows if not row.begun}:
        operation = WRITES.get(action)
        if operation is not None and operation.effect is Effect.CREATE:
            yield operation
