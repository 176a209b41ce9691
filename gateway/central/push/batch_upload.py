"""Batch upload of new records: several requests at once, marks and answers committed in groups.

A commit costs as much as a request, so neither waits for the other, and one commit serves many rows. The rules for a
single row hold: it is marked as begun, on disk, before its request is sent, and leaves the outbox with central's
answer. Rows that were marked but not sent, because central went offline or urgent rows are due, are unmarked. A batch
has at most one row of a record, so the order per record is kept.

An answer need not contain the id of the new record. Such records are searched for together, once all other answers are
stored: before that, nobody knows which create a record of the list belongs to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from gateway.central.client.answers import JsonObject
from gateway.central.push.requests import DeliveryRequest, answered_record, delivery_request, given_id
from gateway.central.push.unknown_outcomes import AnsweredCreate, UnknownCreate
from gateway.central.push.upstream import Upstream
from gateway.domain.errors import CentralRefused, CentralUnavailable, StoreError
from gateway.domain.references import may_name_provisional
from gateway.domain.writes import WriteOperation
from gateway.store import OutboxDelivery, OutboxRow

log = structlog.get_logger(__name__)

_KINDS = frozenset({"camera_event", "entry"})
_AT_ONCE = 3  # of the client's connections; one is left for other requests
_ROWS_FOR_ANOTHER = 8
_BEGUN_TOGETHER = 50  # twice as many, and unsaved answers, are searched for after a power cut
_ANSWERS_UNKEPT = 80
_GATHER_SECONDS = 0.02  # a commit costs as much for one answer as for ten
_STOP_SECONDS = 2.0
_LONGEST_SECONDS = 2.0  # then urgent rows are looked for again


def can_batch(row: OutboxRow) -> bool:
    """Return whether a row may go in a batch: a create of a camera event or entry that central cannot have yet."""
    new = row.kind in _KINDS and row.action == "create" and not row.begun
    return new and not may_name_provisional(row.body)


class BatchUpload:
    """Upload of rows of different records, oldest first: several at once where there are many.

    `park` is called with a row that has no operation, `on_failure` with one that central did not accept (it returns
    whether to go on), `on_acknowledged` with one that central accepted.
    """

    def __init__(
        self,
        upstream: Upstream,
        rows: Sequence[OutboxRow],
        *,
        park: Callable[[OutboxRow, CentralRefused], Awaitable[None]],
        on_failure: Callable[[OutboxRow, DeliveryRequest, CentralUnavailable | CentralRefused], Awaitable[bool]],
        on_acknowledged: Callable[[OutboxRow], Awaitable[None]],
    ) -> None:
        self._newest = upstream.newest
        self._client = upstream.client
        self._restore = upstream.restore
        self._outbox = upstream.store.outbox
        self._clock = upstream.clock
        self._rows = rows
        self._park = park
        self._on_failure = on_failure
        self._with_ids = upstream.outcomes.with_ids
        self._on_acknowledged = on_acknowledged
        self._at_once = min(_AT_ONCE, 1 + len(rows) // _ROWS_FOR_ANOTHER)
        self._ends_at = self._clock.monotonic() + _LONGEST_SECONDS
        self._begun: asyncio.Queue[OutboxRow | None] = asyncio.Queue(_BEGUN_TOGETHER)
        self._answered: list[OutboxDelivery] = []
        self._unnamed: list[AnsweredCreate] = []
        self._came = asyncio.Event()
        self._unsaved = asyncio.Semaphore(_ANSWERS_UNKEPT)
        self._all_sent = asyncio.Event()
        self._untried: set[int] = set()
        self._stopped = False
        self._fault: StoreError | None = None

    async def send(self) -> bool:
        """Send the rows, or as many as two seconds allow; return whether more may be sent at once.

        Raises StoreError when the outcome of a row cannot be stored; that row is sent again, with its key.
        """
        try:
            async with asyncio.TaskGroup() as keeping:
                keeping.create_task(self._keep())
                async with asyncio.TaskGroup() as sending:
                    sending.create_task(self._begin())
                    for _ in range(self._at_once):
                        sending.create_task(self._send())
                self._all_sent.set()
                self._came.set()
        except asyncio.CancelledError:
            await self._end_early()
            raise
        if self._untried:
            await self._outbox.not_begun(self._untried)
        if self._fault is not None:
            raise self._fault
        await self._keep_unnamed()
        return not self._stopped

    async def _end_early(self) -> None:
        """Store the known outcomes when the gateway stops, so that fewer records are searched for at the next start."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._keep_answered()
                if self._untried:
                    await self._outbox.not_begun(self._untried)
        except (StoreError, TimeoutError) as error:
            log.debug("batch_ended_unsaved", error=str(error))

    async def _begin(self) -> None:
        """Mark rows as begun, not far ahead of their requests."""
        try:
            for first in range(0, len(self._rows), _BEGUN_TOGETHER):
                if self._stopped or (first and self._is_over()):
                    break
                together = self._rows[first : first + _BEGUN_TOGETHER]
                self._untried.update(row.id for row in together)  # before the commit, which a stop does not undo
                begun = await self._outbox.begin_together(
                    together, newest=self._newest.highest, begun_at=self._newest.now()
                )
                self._untried -= {row.id for row in together} - {row.id for row in begun}
                for row in begun:
                    await self._begun.put(row)
        except StoreError as error:
            self._stop(error)
        for _ in range(self._at_once):
            await self._begun.put(None)

    def _is_over(self) -> bool:
        return self._clock.monotonic() >= self._ends_at or len(self._unnamed) >= _ANSWERS_UNKEPT

    async def _send(self) -> None:
        first = True
        while (row := await self._begun.get()) is not None:
            if self._stopped or (self._is_over() and not first):
                continue  # it is marked back
            first = False
            try:
                await self._try(row)
            except StoreError as error:
                self._stop(error)

    async def _try(self, row: OutboxRow) -> None:
        request = delivery_request(row)
        if isinstance(request, str):
            await self._park(row, CentralRefused(request))
            return
        operation = request.operation
        self._untried.discard(row.id)
        try:
            answer = await self._client.call(operation.method, operation.path, request.body, key=row.key)
        except (CentralUnavailable, CentralRefused) as error:
            if not await self._on_failure(row, request, error):
                self._stopped = True
            return
        central_id = given_id(answer, operation.resources)
        if central_id is None:
            self._unnamed.append((UnknownCreate(row, operation, request.body), answer))
            await self._on_acknowledged(row)
            return
        self._answered.append(_delivery(row, operation, answer))
        self._came.set()
        await self._on_acknowledged(row)
        await self._restore.on_given(row, central_id)
        await self._unsaved.acquire()

    async def _keep(self) -> None:
        """Store answers; each commit takes those that came during the one before."""
        while self._answered or not self._all_sent.is_set():
            await self._came.wait()
            self._came.clear()
            if self._at_once > 1:
                await self._gather()
            try:
                await self._keep_answered()
            except StoreError as error:
                self._stop(error)

    async def _gather(self) -> None:
        """Wait a moment for more answers, as long as any can come."""
        try:
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._all_sent.wait()
        except TimeoutError:
            return

    async def _keep_answered(self) -> None:
        together, self._answered = self._answered, []
        try:
            if together:
                now = self._clock.wall()
                await self._outbox.delivered_together(together, now=now.micros, trusted=now.trusted)
        finally:
            for _ in together:
                self._unsaved.release()

    async def _keep_unnamed(self) -> None:
        """Search for the records whose ids central's answers lack, and store them."""
        if not self._unnamed:
            return
        async with self._with_ids(self._unnamed) as answers:
            now = self._clock.wall()
            together = [
                _delivery(create.row, create.operation, answer)
                for (create, _), answer in zip(self._unnamed, answers, strict=True)
            ]
            await self._outbox.delivered_together(together, now=now.micros, trusted=now.trusted)

    def _stop(self, fault: StoreError) -> None:
        self._stopped, self._fault = True, self._fault or fault


def _delivery(row: OutboxRow, operation: WriteOperation, answer: JsonObject) -> OutboxDelivery:
    names = operation.resources
    return OutboxDelivery(row, given_id(answer, names), answered_record(answer, names))
