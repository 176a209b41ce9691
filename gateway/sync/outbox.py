"""The outbox on its way up: at least once, in order per record, the same key over all tries of a row.

Reactions to a try that fails:
- central cannot be reached, or refuses the account: everything waits, and goes on by itself;
- central failed with this row: the row waits, others go on;
- central refuses the row: it is parked for a person, with central's words, and later rows of its record behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from pydantic import TypeAdapter, ValidationError

from gateway.clock import Clock
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.store import Entry, OutboxRow, Store
from gateway.supervision import Backoff
from gateway.sync.answers import CentralDenied, CentralFailed, JsonObject
from gateway.sync.central import CentralClient, Method
from gateway.sync.field_map import record_id

log = structlog.get_logger(__name__)

_BODY = TypeAdapter(JsonObject)
_BATCH = 50
_LONG_AWAY = 3  # failures in a row after which central counts as away
_IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Shipment:
    """A row as the operation that delivers it."""

    method: Method
    path: str
    resources: tuple[str, ...]
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Turn:
    """What follows a turn of sending: seconds to wait, and whether a new row ends the waiting."""

    wait: float
    new_rows_count: bool = True


class OutboxSender:
    """Sends what waits in the store's outbox.

    `row_backoff` spaces the tries of one row, `away_backoff` those of central as a whole. Their times are wall time in
    the store; a wall clock that stepped back does not keep rows waiting longer than the longest backoff.
    """

    def __init__(
        self,
        *,
        client: CentralClient,
        store: Store,
        clock: Clock,
        row_backoff: Backoff | None = None,
        away_backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._row_backoff = row_backoff or Backoff(first=2.0, longest=300.0)
        self._away_backoff = away_backoff or Backoff(first=0.5, longest=15.0)
        self._failures = 0

    async def start_afresh(self) -> None:
        """Nothing that waits from before a start has to wait any longer."""
        await self._store.outbox.retry_now()

    async def send_due(self) -> Turn:
        """Send what is due, oldest first, until there is no more or central does not take it.

        Raises StoreError when the outcome of a row cannot be kept; that row is sent again, with its key.
        """
        rows = await self._store.outbox.due(now=self._clock.wall().micros, limit=_BATCH)
        for row in rows:
            if not await self._send(row):
                return Turn(self._away_backoff.wait(self._failures), new_rows_count=False)
        return Turn(0.0 if rows else await self._until_due())

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
        shipment = shipment_of(row)
        if isinstance(shipment, str):
            await self._park(row, shipment)
            return True
        try:
            answer = await self._client.call(shipment.method, shipment.path, shipment.body, key=row.key)
        except (CentralUnavailable, CentralDenied) as error:
            return await self._failed(row, error)
        except CentralRefused as error:
            await self._park(row, str(error))
        else:
            await self._store.outbox.delivered(row, central_id=given_id(answer, shipment.resources))
        await self._through()
        return True

    async def _failed(self, row: OutboxRow, error: CentralUnavailable | CentralDenied) -> bool:
        self._failures += 1
        if self._failures == 1 and isinstance(error, CentralDenied | CentralFailed):
            log.warning("outbox_held_up", kind=row.kind, record_id=row.record_id, error=str(error))
        next_at = self._clock.wall().micros + int(self._row_backoff.wait(row.tries + 1) * 1_000_000)
        await self._store.outbox.failed(row, error=str(error), next_at=next_at)
        return isinstance(error, CentralFailed) and self._failures < _LONG_AWAY

    async def _park(self, row: OutboxRow, reason: str) -> None:
        stamp = self._clock.wall()
        await self._store.outbox.park(row, error=reason)
        log.warning("record_parked", kind=row.kind, record_id=row.record_id, error=reason)
        event = Event(
            kind=EventKind.RECORD_PARKED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=f"{row.kind} {row.record_id} waits for a person: {reason}",
            data={"outbox_id": row.id, "kind": row.kind, "record_id": row.record_id},
        )
        await self._store.journal.record(Entry(events=(event,)))

    async def _through(self) -> None:
        """Central answers; after a long absence the rows that wait out a backoff go at once and in order."""
        was_away, self._failures = self._failures >= _LONG_AWAY, 0
        if was_away:
            await self._store.outbox.retry_now()


def shipment_of(row: OutboxRow) -> Shipment | str:
    """The operation for a row, or why there is none."""
    try:
        body = _BODY.validate_json(row.body)
    except ValidationError:
        return "its body is not a JSON object"
    match row.kind:
        case "camera_event":
            return Shipment("PUT", "/v1/camera/event", ("event", "camera_event"), body)
        case "entry":
            return Shipment("PUT", "/v1/entry", ("entry",), body)
    return f"no operation takes a record of kind {row.kind!r}"


def given_id(answer: JsonObject, resources: tuple[str, ...]) -> int | None:
    """The id that central gave a new record, or None when its answer does not say."""
    for name in resources:
        record = answer.get(name)
        if isinstance(record, dict) and (found := record_id(record)) is not None:
            return found
    return record_id(answer)
