"""Evidence on its way up: files of any size, one at a time, beside the outbox that must not wait for them.

A file goes when central has its camera event, with a key that stays over all tries. Central's refusal parks it for a
person; its absence makes it wait; one that was let go of meanwhile is not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.clock import Clock, iso_utc
from gateway.domain.errors import CentralRefused, CentralUnavailable, GatewayError
from gateway.domain.events import Event, EventKind
from gateway.domain.exhibits import Exhibit, download_name
from gateway.store import Entry, OutboxRow, Store
from gateway.supervision import Backoff
from gateway.sync.answers import CentralDenied
from gateway.sync.central import CentralClient, Upload
from gateway.sync.outbox import given_id

log = structlog.get_logger(__name__)

PATH = "/v1/camera/event/evidence"
_LOOK_SECONDS = 60.0
_AWAY_SECONDS = 5.0
_RESOURCES = ("evidence", "file")


@dataclass(frozen=True, slots=True)
class _Held:
    """Why a file does not go up yet; `gone`: it never will."""

    reason: str
    gone: bool = False


class EvidenceSender:
    """Sends exhibits. `path` gives an exhibit's file, or raises GatewayError while it cannot be had."""

    def __init__(
        self,
        *,
        client: CentralClient,
        store: Store,
        clock: Clock,
        path: Callable[[Exhibit], Path],
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._path = path
        self._backoff = backoff or Backoff(first=5.0, longest=3600.0)

    async def run(self) -> None:
        """Send whatever is due, until cancelled. Raises StoreError."""
        while True:
            version = self._store.changes.version
            wait = await self.send_due()
            if wait > 0 and self._client.state.reachable is False:
                await asyncio.sleep(wait)
            elif wait > 0:
                await self._store.changes.beyond(version, within=wait)

    async def send_due(self) -> float:
        """Send one file that is due; seconds until there may be another. Raises StoreError.

        While central is known to be away nothing is tried: whoever asks it for something else finds it back.
        """
        if self._client.state.reachable is False:
            return _AWAY_SECONDS
        row = await self._store.exhibits.due(now=self._clock.wall().micros)
        if row is None:
            soonest = await self._store.exhibits.next_due()
            if soonest is None:
                return _LOOK_SECONDS
            seconds = (soonest - self._clock.wall().micros) / 1_000_000
            return min(max(seconds, 0.1), _LOOK_SECONDS)
        await self._send(row)
        return 0.0

    async def _send(self, row: OutboxRow) -> None:
        upload = await self._upload(row)
        if isinstance(upload, _Held):
            if upload.gone:
                await self._store.exhibits.drop_row(row)
            else:
                await self._put_off(row, upload.reason)
            return
        try:
            answer = await self._client.upload(PATH, upload, key=row.key)
        except (CentralUnavailable, CentralDenied) as error:
            await self._put_off(row, str(error))
        except CentralRefused as error:
            await self._park(row, str(error))
        except OSError as error:
            await self._put_off(row, f"its file cannot be read: {error.strerror or error}")
        else:
            await self._store.exhibits.sent(row, central_id=given_id(answer, _RESOURCES))

    async def _upload(self, row: OutboxRow) -> Upload | _Held:
        exhibit = await self._store.exhibits.get(row.record_id)
        if exhibit is None:
            return _Held("it was deleted", gone=True)
        event_id = await self._store.held.central_id("camera_event", exhibit.camera_event_id)
        if event_id is None:
            return _Held("central does not have its camera event yet")
        try:
            path = self._path(exhibit)
        except GatewayError as error:
            return _Held(str(error))
        return Upload(
            fields={
                "id": str(event_id),
                "name": exhibit.name,
                "description": exhibit.description,
                "date_at": iso_utc(exhibit.created_at),
                "sha256": exhibit.sha256,
            },
            file=path,
            name=download_name(exhibit.name, exhibit.media_type),
            media_type=exhibit.media_type,
            size=exhibit.size,
        )

    async def _put_off(self, row: OutboxRow, reason: str) -> None:
        wait = int(self._backoff.wait(row.tries + 1) * 1_000_000)
        await self._store.outbox.failed(row, error=reason, next_at=self._clock.wall().micros + wait)

    async def _park(self, row: OutboxRow, reason: str) -> None:
        await self._store.outbox.park(row, error=reason)
        log.warning("evidence_parked", evidence_id=row.record_id, error=reason)
        now = self._clock.wall()
        event = Event(
            kind=EventKind.RECORD_PARKED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            description=f"evidence {row.record_id} waits for a person: {reason}",
            data={"outbox_id": row.id, "kind": row.kind, "record_id": row.record_id},
        )
        await self._store.journal.record(Entry(events=(event,)))
