"""Delivery of the outbox to central: at least once, in order per record, with one key in all attempts of a row.

Reactions to a failed attempt:
- central cannot be reached, or refuses the account: everything waits, and is retried with backoff;
- central fails with this row: the row waits and others go on; an operation that fails with every row, or is not
  permitted, is paused by itself;
- central refuses the row: it is parked for a person, with central's message;
- the outcome of a create is unknown: the record is searched for before it is sent again, see `unknown_outcomes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import structlog

from gateway.central.client.answers import CentralDenied, CentralFailed, JsonObject
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.client.pace import ReturnHold
from gateway.central.push.batch_upload import BatchUpload, can_batch
from gateway.central.push.delivered_record import names_lost_card
from gateway.central.push.events import OutboxEvents
from gateway.central.push.requests import DeliveryRequest, answered_record, creates_among, delivery_request, given_id
from gateway.central.push.restored_central import CentralView
from gateway.central.push.search_attempts import Absent, FoundAtCentral
from gateway.central.push.unknown_outcomes import UnknownCreate
from gateway.central.push.upstream import Upstream
from gateway.central.site_cards import KIND as CARD
from gateway.domain.conflicts import READS, settle
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import CARD_CREATE, Effect
from gateway.runtime.supervision import Backoff
from gateway.store import OutboxRow, Resolved
from gateway.store.outbox.rows import body_object

log = structlog.get_logger(__name__)

_BATCH = 400
_CONFLICT = 409
_SINGLY = 50  # then urgent rows are looked for again
_LONG_AWAY = 3  # failures in a row after which central counts as away
_IDLE_SECONDS = 60.0


_FAILURES = 3  # in a row; fewer may be the fault of single records

Action = tuple[str, str]
"""An operation: a kind of record and an action, as rows of the outbox have them."""


def action_of(row: OutboxRow) -> Action:
    """Return the operation of a row."""
    return row.kind, row.action


@dataclass(slots=True)
class _Trouble:
    """The failures of an operation.

    Attributes:
        times: how many times in a row it was denied or failed.
        until: when it may be tried again, in monotonic seconds; 0 for at any time.
        said: its last error; "" for a denial, which the client reports.
    """

    times: int = 0
    until: float = 0.0
    said: str = ""


class PausedOperations:
    """Backoff for each operation: one that is denied, or fails repeatedly, is tried more and more rarely."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        denied_backoff: Backoff | None = None,
        failing_backoff: Backoff | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._denied_backoff = denied_backoff or Backoff(first=2.0, longest=60.0)
        self._failing_backoff = failing_backoff or Backoff(first=0.5, longest=15.0)
        self._troubles: dict[Action, _Trouble] = {}

    def denied(self, action: Action) -> bool:
        """Pause an operation that central does not permit; return whether that is new."""
        trouble = self._troubles.setdefault(action, _Trouble())
        trouble.times += 1
        trouble.said = ""
        trouble.until = self._monotonic() + self._denied_backoff.wait(trouble.times)
        return trouble.times == 1

    def failed(self, action: Action, said: str) -> int:
        """Count a failure of central; return how many in a row. The third pauses the operation."""
        trouble = self._troubles.setdefault(action, _Trouble())
        trouble.times += 1
        trouble.said = said
        if trouble.times >= _FAILURES:
            trouble.until = self._monotonic() + self._failing_backoff.wait(trouble.times - _FAILURES + 1)
        return trouble.times

    def went_through(self, action: Action) -> bool:
        """Note that central carried out an operation, or refused only the record; return whether it was paused."""
        trouble = self._troubles.pop(action, None)
        return trouble is not None and trouble.until > 0

    def is_doubtful(self, action: Action) -> bool:
        """Return whether the operation's last attempt was denied or failed."""
        return action in self._troubles

    def now(self) -> frozenset[Action]:
        """Return the operations that are paused now."""
        now = self._monotonic()
        return frozenset(action for action, trouble in self._troubles.items() if trouble.until > now)

    def failing(self) -> tuple[str, ...]:
        """Return the last errors of the operations with which central fails repeatedly."""
        return tuple(trouble.said for trouble in self._troubles.values() if trouble.until > 0 and trouble.said)

    def left(self) -> float | None:
        """Return the seconds until the next paused operation may be tried; None when none is paused."""
        now = self._monotonic()
        return min((trouble.until - now for trouble in self._troubles.values() if trouble.until > now), default=None)


@dataclass(slots=True)
class WaitingCaller:
    """A caller who waits for the outcome of a row.

    Attributes:
        record_id: the site's id of the record that central has now, or that goes up again; None while the row waits.
        central_id: central's id of a new record, None if its answer has none.
        waits: whether the record waits for central after all.
        refusal: why central did not take the row; None unless that is so.
    """

    record_id: int | None = None
    central_id: int | None = None
    waits: bool = False
    refusal: CentralRefused | None = None


@dataclass(frozen=True, slots=True)
class SendRound:
    """Result of a round of sending: the seconds to wait, and whether a new row ends the wait early."""

    wait: float
    wakes_on_new_rows: bool = True


class OutboxSender:
    """Sender of the rows in the store's outbox.

    `row_backoff` spaces the attempts of one row, `away_backoff` those at central as a whole. The store keeps their
    times as wall time; a wall clock that is set back does not keep rows waiting longer than the longest backoff. After
    a long loss, all but urgent rows are held for up to `held_seconds`. `card_renamed` gets a card's old and new id.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        row_backoff: Backoff | None = None,
        away_backoff: Backoff | None = None,
        card_renamed: Callable[[int, int], None] | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        self._upstream = upstream
        self._client = upstream.client
        self._newest = upstream.newest
        self._restore = upstream.restore
        self._outcomes = upstream.outcomes
        self._own_records = upstream.own_records
        self._store = upstream.store
        self._outbox = upstream.store.outbox
        self._cards = upstream.cards
        self._clock = clock = upstream.clock
        self._events = OutboxEvents(store=upstream.store, clock=clock)
        self._card_renamed = card_renamed
        self._row_backoff = row_backoff or Backoff(first=2.0, longest=300.0)
        self._away_backoff = away_backoff or Backoff(first=0.5, longest=15.0)
        self._longest = max(self._row_backoff.longest, self._outcomes.longest)
        self._paused = PausedOperations(monotonic=clock.monotonic, failing_backoff=self._away_backoff)
        self._callers: dict[int, WaitingCaller] = {}
        self._failures = 0
        self._is_away = False  # as this round found
        self._hold = ReturnHold(state=lambda: self._client.state, monotonic=clock.monotonic, longest=held_seconds)

    @property
    def failing(self) -> tuple[str, ...]:
        """Errors of the operations with which central fails repeatedly, a sentence each."""
        return self._paused.failing()

    def is_away(self) -> bool:
        """Return whether central is known not to answer. Never waits."""
        return self._client.away()

    async def start_afresh(self) -> None:
        """Make all rows due that a backoff from before the start holds back."""
        await self._outbox.retry_now()

    async def run(self, report: Callable[[SendRound], Awaitable[None]]) -> None:
        """Send until cancelled: at once while rows are due, otherwise when the next is due or a new one comes.

        Rows from before the start are due at once. `report` is called with the result of each round. Raises StoreError.
        """
        await self.start_afresh()
        while True:
            version = self._store.changes.version
            sent = await self.send_due()
            await report(sent)
            if not sent.wakes_on_new_rows:
                await asyncio.sleep(sent.wait)
            elif sent.wait > 0:
                await self._store.changes.beyond(version, within=sent.wait)

    async def send_due(self) -> SendRound:
        """Send due rows, oldest first, until the round is over or central does not accept one.

        Raises StoreError when the outcome of a row cannot be stored; that row is sent again, with its key.
        """
        await self._cards.catch_up()
        now, without = self._clock.wall().micros, self._paused.now()
        held, self._is_away = self._hold.left(), False
        rows = await self._outbox.due(now=now, limit=_BATCH, without=without, only_urgent=held > 0)
        if not rows:
            return SendRound(held or await self._until_due())
        await self._outcomes.begin_round(rows)
        try:
            await self._newest.refresh(creates_among(rows))
        except CentralUnavailable:
            self._failures += 1
            return SendRound(self._away_backoff.wait(self._failures), wakes_on_new_rows=False)
        along = list(takewhile(self._can_batch, rows))
        well = await (self._batch(along).send() if along else self._send_singly(rows))
        if well or not self._is_away:
            return SendRound(0.0)
        return SendRound(self._away_backoff.wait(max(self._failures, 1)), wakes_on_new_rows=False)

    def _can_batch(self, row: OutboxRow) -> bool:
        return not self._failures and can_batch(row) and not self._paused.is_doubtful(action_of(row))

    def _batch(self, rows: list[OutboxRow]) -> BatchUpload:
        return BatchUpload(
            self._upstream,
            rows,
            park=self._park,
            on_failure=self._on_failure,
            on_acknowledged=self._on_acknowledged,
        )

    async def _send_singly(self, rows: Sequence[OutboxRow]) -> bool:
        """Send rows one by one until the rest can go as a batch. After a failure the first row tests central."""
        for number, row in enumerate(rows[:_SINGLY]):
            if number and self._can_batch(row):
                break
            if not await self._send(row):
                return False
        return True

    async def _until_due(self) -> float:
        soonest = await self._outbox.next_due(without=self._paused.now())
        paused = self._paused.left()
        longest = _IDLE_SECONDS if paused is None else min(paused, _IDLE_SECONDS)
        if soonest is None:
            return longest
        now = self._clock.wall().micros
        if await self._outbox.bring_near(latest=now + int(self._longest * 1_000_000), files=False):
            return 0.0
        return min(max((soonest - now) / 1_000_000, 0.0), longest)

    async def send_for_caller(self, row: OutboxRow) -> WaitingCaller:
        """Send a row of `PendingWrites.ask`, for a caller who waits for the outcome.

        Raises CentralRefused if central does not take it; the row is still there. Raises StoreError.
        """
        caller = self._callers[row.id] = WaitingCaller()
        try:
            await self._newest.refresh(creates_among((row,)))
            await self._send(row)
        except CentralUnavailable as error:  # before anything was sent
            log.debug("caller_does_not_wait", kind=row.kind, error=str(error))
        finally:
            del self._callers[row.id]
        if caller.refusal is not None:
            raise caller.refusal
        return caller

    async def _send(self, row: OutboxRow) -> bool:
        """Try one row and store the outcome; return whether the next one may be tried at once."""
        request = await self._request_of(row)
        if isinstance(request, Resolved):
            await self._cannot_go(row, request)
            return True
        try:
            look = await self._look(row, request)
            if not await self._is_to_go(row, request, look):
                return True
        except (CentralUnavailable, CentralDenied) as error:
            return await self._failed(row, error)
        try:
            settled = await self._settle(row, request, look.record)
            begun = None if settled is None else await self._begin(settled[0])
            if settled is None or begun is None:
                return True
            row, request = begun, settled[1]
            operation = request.operation
            answer = await self._client.call(operation.method, operation.path, request.body, key=row.key)
        except (CentralUnavailable, CentralRefused) as error:
            return await self._on_failure(row, request, error)
        async with self._outcomes.with_ids([(UnknownCreate(row, operation, request.body), answer)]) as (answer,):
            await self._delivered(row, request, answer)
        if request.operation.effect is Effect.CREATE:
            await self._restore.on_given(row, given_id(answer, operation.resources))
        await self._on_acknowledged(row)
        return True

    async def _settle(
        self, row: OutboxRow, request: DeliveryRequest, theirs: JsonObject | None
    ) -> tuple[OutboxRow, DeliveryRequest] | None:
        """Compare a change that waited with central's record; return the part to send, None when nothing is left of it.

        `theirs`: the record as central has it now, None if it did not show it. For the rules see
        `gateway.domain.conflicts`.
        """
        base, operation = _base_of(row), request.operation
        if not base or theirs is None or operation.effect is not Effect.CHANGE:
            return row, request
        base = (await self._store.references.resolve(base)).body
        settled = settle(operation, request.body, base, theirs)
        if settled.body == request.body and not settled.conflicts:
            return row, request
        if settled.conflicts:
            await self._events.conflicts(row, settled.conflicts)
        async with self._cards.turn:
            left = await self._store.pending_writes.settled(row, settled, theirs, now=self._clock.wall().micros)
            if row.kind == CARD:
                record: JsonObject = {**theirs, "id": row.record_id}
                await self._cards.settle(operation, row.record_id, record, sent={}, formerly=row.record_id)
        return None if left is None else (left, replace(request, body=settled.body))

    async def _begin(self, row: OutboxRow) -> OutboxRow | None:
        begun = await self._outbox.begin_together((row,), newest=self._newest.highest, begun_at=self._newest.now())
        return begun[0] if begun else None

    async def _on_failure(
        self, row: OutboxRow, request: DeliveryRequest, error: CentralUnavailable | CentralRefused
    ) -> bool:
        """Store that central did not accept a row; return whether the next one may be tried at once."""
        if isinstance(error, CentralDenied) and error.status:
            return await self._not_permitted(row, error)
        if isinstance(error, CentralUnavailable | CentralDenied):
            sent = isinstance(error, CentralUnavailable) and error.sent
            return await self._failed(row, error, at_central=sent)
        if (doubtful := await doubt(self._client, error, of=request.operation, sent=request.body)) is not None:
            return await self._failed(row, doubtful, at_central=False)
        try:
            await self._refused(row, request, error)
        except CentralUnavailable as away:
            return await self._failed(row, away, at_central=False)
        await self._on_acknowledged(row)
        return True

    async def _look(self, row: OutboxRow, request: DeliveryRequest) -> CentralView:
        """Look at central's record that a change is for: one request tells whose it is, and what central changed."""
        central_id = given_id(request.body, ()) or 0
        if request.operation.effect is Effect.CREATE:
            return CentralView(central_id)
        changes = request.operation.effect is Effect.CHANGE
        return await self._own_records.look(row.kind, central_id, wanted=changes and bool(row.base))

    async def _is_to_go(self, row: OutboxRow, request: DeliveryRequest, look: CentralView) -> bool:
        """Return whether a row is sent now. If not, it is settled or waits. Raises as the client does."""
        if request.operation.effect is not Effect.CREATE:
            return await self._is_of_ours(row, request, look)  # carried out twice, it has the same result
        return not row.begun or await self._is_create_to_go(row, request)

    async def _is_of_ours(self, row: OutboxRow, request: DeliveryRequest, look: CentralView) -> bool:
        """Return whether a change would reach this site's record. If not, it is parked, or need not be sent.

        A card that a restored central has lost is created again, with the change. Raises as the client does.
        """
        why = await self._own_records.doubt(row.kind, row.record_id, look, before=_base_of(row))
        if not why:
            return True
        if row.kind not in READS:
            raise CentralFailed(why)
        if row.kind == CARD and await self._restore.lacks_newest():
            if request.operation.effect is Effect.DELETE:
                await self._delivered(row, request, {})
                return False
            if await self._make_again(row, request):
                return False
        await self._park(row, CentralRefused(why, status=_CONFLICT))
        return False

    async def _make_again(self, row: OutboxRow, request: DeliveryRequest) -> bool:
        """Queue a create for a card that a restored central has lost, with this change; return whether it did."""
        async with self._cards.turn:
            again = await self._cards.make_one_again(row.record_id, change=request.body)
        if again is not None and (caller := self._callers.get(row.id)) is not None:
            caller.record_id, caller.waits = again, True
        return again is not None

    async def _is_create_to_go(self, row: OutboxRow, request: DeliveryRequest) -> bool:
        """Return whether a create that may have reached central is sent again now."""
        if row.stated_id is not None:
            await self._delivered(row, request, {"success": True, "id": row.stated_id})
            return False
        outcome = await self._outcomes.judge(UnknownCreate(row, request.operation, request.body))
        if isinstance(outcome, Absent):
            return True
        if isinstance(outcome, FoundAtCentral):
            await self._delivered(row, request, outcome.record)
        else:
            await self._events.not_known(row, outcome)
        return False

    async def _request_of(self, row: OutboxRow) -> DeliveryRequest | Resolved:
        """Return the request for a row with central's ids, or why it cannot be sent, now or ever."""
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
        """Put a row off until central has the record that it names, or park it if central will never have it."""
        if resolved.waits_for is None:
            await self._park(row, CentralRefused(resolved.reason, status=_CONFLICT))
            return
        next_at = self._clock.wall().micros + int(self._longest * 1_000_000)
        await self._store.references.waits(row.id, resolved, next_at=next_at)

    async def _delivered(self, row: OutboxRow, request: DeliveryRequest, answer: JsonObject) -> None:
        operation = request.operation
        record = answered_record(answer, operation.resources)
        central_id = given_id(answer, operation.resources)
        async with self._cards.turn:
            if operation is CARD_CREATE and central_id is not None:
                await self._cards.make_way(central_id, request.body, card_id=row.record_id)
            now = self._clock.wall()
            known = await self._outbox.delivered(
                row, central_id=central_id, record=record, now=now.micros, trusted=now.trusted
            )
            if (caller := self._callers.get(row.id)) is not None:
                caller.record_id, caller.central_id = known, central_id
            if row.kind == CARD:
                await self._cards.settle(operation, known, record, sent=request.body, formerly=row.record_id)
                if known != row.record_id and self._card_renamed is not None:
                    self._card_renamed(row.record_id, known)

    async def _refused(self, row: OutboxRow, request: DeliveryRequest, error: CentralRefused) -> None:
        """Drop a change of a record that central no longer has; park any other refused row.

        Raises CentralUnavailable when central cannot be asked whether it has lost more than this record.
        """
        effect = request.operation.effect
        if error.status != NOT_FOUND or effect is Effect.CREATE:
            if await names_lost_card(self._client, row.kind, request.body):
                await self._outbox.leave_out(row, "access_id")
            else:
                await self._park(row, error)
        elif effect is Effect.DELETE and row.id not in self._callers:
            await self._delivered(row, request, {})
        else:
            await self._gone_at_central(row, request, error)

    async def _gone_at_central(self, row: OutboxRow, request: DeliveryRequest, error: CentralRefused) -> None:
        """Drop a change of a record that central no longer has, or create the card again if a restored one lost it."""
        log.warning("record_gone_at_central", kind=row.kind, record_id=row.record_id)
        changes_card = row.kind == CARD and request.operation.effect is Effect.CHANGE
        if changes_card and await self._restore.lacks_newest() and await self._make_again(row, request):
            return
        caller = self._callers.get(row.id)
        async with self._cards.turn:
            if caller is None:
                await self._outbox.drop(row)
            if row.kind == CARD:
                await self._cards.forget(row.record_id)
        if caller is None:
            await self._events.dropped(row, str(error))
        else:
            caller.refusal = error

    async def _not_permitted(self, row: OutboxRow, error: CentralDenied) -> bool:
        """Pause the row's operation, and end the round, since other rows may be refused too. The row stays due."""
        if (caller := self._callers.get(row.id)) is not None:
            caller.refusal = error
            return True
        if self._paused.denied(action_of(row)):
            log.warning("outbox_held_up", kind=row.kind, action=row.action, error=str(error))
        await self._outbox.failed(row, error=str(error), next_at=0, at_central=False)
        await self._answers()
        return False

    async def _failed(
        self, row: OutboxRow, error: CentralUnavailable | CentralDenied, *, at_central: bool = True
    ) -> bool:
        # Only a failure that central reports puts a row off for long; the line may work again at any moment.
        backoff = self._row_backoff if isinstance(error, CentralFailed) else self._away_backoff
        next_at = self._clock.wall().micros + int(backoff.wait(row.tries + 1) * 1_000_000)
        await self._outbox.failed(row, error=str(error), next_at=next_at, at_central=at_central)
        if isinstance(error, CentralFailed):
            times = self._paused.failed(action_of(row), str(error))
            await self._answers()
        else:
            self._is_away = True
            times = self._failures = self._failures + 1
        if times == 1 and isinstance(error, CentralDenied | CentralFailed):
            log.warning("outbox_held_up", kind=row.kind, record_id=row.record_id, error=str(error))
        return not self._failures and action_of(row) not in self._paused.now()

    async def _park(self, row: OutboxRow, refusal: CentralRefused) -> None:
        if (caller := self._callers.get(row.id)) is not None:
            caller.refusal = refusal
        elif await self._outbox.park(row, error=str(refusal)):
            await self._events.parked(row, str(refusal))

    async def _on_acknowledged(self, row: OutboxRow) -> None:
        """Note that central accepted the row, or refused it for good, so that its operation works again."""
        if row.action == "create":
            self._newest.on_answer(row.kind)
        had_paused = self._paused.went_through(action_of(row))
        if not await self._answers() and had_paused:
            await self._outbox.retry_now(files=False)

    async def _answers(self) -> bool:
        """Note that central answers. Return whether it was offline so long that rows in backoff are now due at once."""
        was_away, self._failures = self._failures >= _LONG_AWAY, 0
        if was_away:
            await self._outbox.retry_now(files=False)
        return was_away


def _base_of(row: OutboxRow) -> JsonObject:
    """Return the values of a change's fields before the change, {} if they are unknown."""
    return (body_object(row.base) if row.base else None) or {}
