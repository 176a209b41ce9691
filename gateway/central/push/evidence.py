"""Upload of evidence: files of any size, one at a time, beside the outbox, which must not wait for them.

A file is sent once central has its camera event, with the same key in all attempts. A refusal by central parks it for a
person; while central is offline it waits; a file that was deleted meanwhile is not sent. A file that is lost at the
site waits for a person, or until it is back. A file that may have arrived is searched for at central before it is sent
again from its beginning: see `unknown_outcomes`. Files that waited while central was offline are sent soon after it
answers again; a file with which central failed keeps its own backoff.
"""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from gateway.central.client.answers import CentralDenied, CentralFailed
from gateway.central.client.connections import Upload
from gateway.central.client.not_found import doubt
from gateway.central.client.values import record_id
from gateway.central.push.events import OutboxEvents
from gateway.central.push.requests import answered_record, given_id
from gateway.central.push.search_attempts import Absent, FoundAtCentral, Outcome
from gateway.central.push.upstream import Upstream
from gateway.domain.errors import CameraUnavailable, CentralRefused, CentralUnavailable, NotFoundError
from gateway.domain.evidence import FILE_LOST, Evidence, download_name
from gateway.runtime.clock import iso_utc
from gateway.runtime.supervision import Backoff
from gateway.store import OutboxRow

log = structlog.get_logger(__name__)

PATH = "/v1/camera/event/evidence"
_LOOK_SECONDS = 60.0
_AWAY_SECONDS = 5.0
_SPREAD_SECONDS = 10.0
_LOST_SECONDS = 60.0
_RESOURCES = ("evidence", "file")
_EVENT_PATH = "/v1/camera/event"
_EVENT_RESOURCES = ("event", "camera_event")


class EvidenceOnDisk(Protocol):
    """Files of evidence on disk."""

    async def at_hand(self, evidence: Evidence) -> Path:
        """Return the path of a file that can be read. Raises NotFoundError if it is lost.

        Raises CameraUnavailable and StoreError if that cannot be known now.
        """
        ...

    async def lose(self, evidence: Evidence, why: str) -> None:
        """Note that a file could not be read after all. Raises StoreError."""
        ...

    async def find_waiting(self) -> None:
        """Look for lost files that are back, and queue them again. Raises CameraUnavailable, StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class _NotReady:
    """Reason why a file is not sent yet; `gone`: it never will be."""

    reason: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class _Going:
    """Evidence whose camera event central has, as `event_id`."""

    evidence: Evidence
    event_id: int

    def upload(self, file: Path) -> Upload:
        """Make the upload of the file."""
        evidence = self.evidence
        return Upload(
            fields={
                "id": str(self.event_id),
                "name": evidence.name,
                "description": evidence.description,
                "date_at": iso_utc(evidence.created_at),
                "sha256": evidence.sha256,
            },
            file=file,
            name=download_name(evidence.name, evidence.media_type),
            media_type=evidence.media_type,
            size=evidence.size,
        )


class EvidenceSender:
    """Sender of evidence."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        files: EvidenceOnDisk,
        backoff: Backoff | None = None,
        spread_seconds: float = _SPREAD_SECONDS,
    ) -> None:
        """Start with nothing sent.

        `spread_seconds`: files wait up to so long after central came back, since other sites send theirs then too.
        """
        self._spread = spread_seconds
        self._client = upstream.client
        self._answers_since = self._client.state.since
        self._own_records = upstream.own_records
        self._store = upstream.store
        self._evidence = upstream.store.evidence
        self._outbox = upstream.store.outbox
        self._clock = upstream.clock
        self._events = OutboxEvents(store=upstream.store, clock=upstream.clock)
        self._files = files
        self._looked_for_lost = -math.inf
        self._backoff = backoff or Backoff(first=5.0, longest=3600.0)
        self._looks = upstream.attempts
        self._longest = max(self._backoff.longest, self._looks.longest)

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
        """Send one file that is due; return the seconds until another may be due. Raises StoreError.

        While central is known to be offline nothing is sent: other requests notice its return.
        """
        if self._client.state.reachable is False:
            return _AWAY_SECONDS
        await self._heed_return()
        await self._look_for_lost()
        row = await self._evidence.due(now=self._clock.wall().micros)
        if row is None:
            soonest = await self._evidence.next_due()
            if soonest is None:
                return _LOOK_SECONDS
            now = self._clock.wall().micros
            if await self._outbox.bring_near(latest=now + int(self._longest * 1_000_000), files=True):
                return 0.0
            return min(max((soonest - now) / 1_000_000, 0.1), _LOOK_SECONDS)
        await self._send(row)
        return 0.0

    async def _heed_return(self) -> None:
        state = self._client.state
        if state.reachable and state.since != self._answers_since:
            spread = random.uniform(0, self._spread)  # noqa: S311 (spreads load)
            await self._outbox.retry_unanswered(at=self._clock.wall().micros + int(spread * 1_000_000))
            self._answers_since = state.since

    async def _look_for_lost(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked_for_lost < _LOST_SECONDS:
            return
        self._looked_for_lost = now
        try:
            await self._files.find_waiting()
        except CameraUnavailable as error:
            log.debug("lost_evidence_not_looked_for", error=str(error))  # the watch over the folder reports it

    async def _send(self, row: OutboxRow) -> None:
        try:
            going = await self._going(row)
            if isinstance(going, _Going) and (why := await self._why_anothers(going)):
                going = _NotReady(why)
        except CentralUnavailable as error:
            await self._put_off(row, str(error), unanswered=not isinstance(error, CentralFailed))
            return
        if isinstance(going, _NotReady):
            if going.gone:
                log.warning("evidence_not_sent", evidence_id=row.record_id, reason=going.reason)
                await self._evidence.drop_row(row)
            else:
                await self._put_off(row, going.reason)
                if not isinstance(await self._going(row), _NotReady):  # its camera event has just gone up
                    await self._outbox.failed(row, error=going.reason, next_at=self._clock.wall().micros)
            return
        if row.begun and not await self._is_still_to_go(row, going):
            return
        try:
            upload = going.upload(await self._files.at_hand(going.evidence))
        except NotFoundError as error:
            await self._outbox.park(row, error=str(error))  # the loss is reported already
        except CameraUnavailable as error:
            await self._put_off(row, str(error), at_central=False)
        else:
            await self._try(row, going, upload)

    async def _is_still_to_go(self, row: OutboxRow, going: _Going) -> bool:
        """Return `_is_to_go` for a file that may have arrived; put the file off if central does not answer."""
        try:
            return await self._is_to_go(row, going)
        except CentralDenied as error:
            await self._put_off(row, str(error))
        except CentralUnavailable as error:
            await self._put_off(row, str(error), unanswered=not isinstance(error, CentralFailed))
        return False

    async def _try(self, row: OutboxRow, going: _Going, upload: Upload) -> None:
        if not await self._outbox.begin_together((row,)):
            return
        try:
            answer = await self._client.upload(PATH, upload, key=row.key)
        except CentralDenied as error:
            await self._put_off(row, str(error), at_central=False)
        except CentralUnavailable as error:
            unanswered = not isinstance(error, CentralFailed)
            await self._put_off(row, str(error), unanswered=unanswered, at_central=error.sent)
        except CentralRefused as error:
            await self._refused(row, error)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            await self._files.lose(going.evidence, why)
            await self._outbox.park(row, error=f"{FILE_LOST} {why}")
        else:
            await self._evidence.sent(row, central_id=given_id(answer, _RESOURCES))

    async def _going(self, row: OutboxRow) -> _Going | _NotReady:
        evidence = await self._evidence.get(row.record_id)
        if evidence is None:
            return _NotReady("it was deleted", gone=True)
        event_id = await self._store.pending_writes.central_id("camera_event", evidence.camera_event_id)
        if event_id is not None:
            return _Going(evidence, event_id)
        if await self._store.pending_writes.waiting("camera_event", evidence.camera_event_id):
            return _NotReady("central does not have its camera event yet")
        return _NotReady("central was never to have its camera event", gone=True)

    async def _why_anothers(self, going: _Going) -> str:
        """Return why central's id may belong to another camera event now, "" while it belongs to this one."""
        look = await self._own_records.look("camera_event", going.event_id)
        return await self._own_records.doubt("camera_event", going.evidence.camera_event_id, look)

    async def _is_to_go(self, row: OutboxRow, going: _Going) -> bool:
        """Return whether a file that may have arrived is sent again now. If not, it is stored as arrived, or waits."""
        if row.stated_id is not None:
            await self._evidence.sent(row, central_id=row.stated_id)
            return False
        outcome = await self._at_central(row, going)
        if isinstance(outcome, Absent):
            return True
        if isinstance(outcome, FoundAtCentral):
            self._looks.forget(row.id)
            await self._evidence.sent(row, central_id=record_id(outcome.record))
        else:
            await self._events.not_known(row, outcome)
        return False

    async def _at_central(self, row: OutboxRow, going: _Going) -> Outcome:
        """Search for the file among those that central shows with its camera event."""
        asked_at = self._clock.monotonic()
        try:
            answer = await self._client.call("POST", _EVENT_PATH, {"id": going.event_id})
        except CentralDenied as error:
            if not error.status:
                raise
            return self._looks.unclear(row.id, f"central does not let it be looked for: {error}")
        except CentralRefused as error:
            if (doubtful := await doubt(self._client, error)) is not None:
                raise doubtful from error
            return self._looks.unclear(row.id, f"it cannot be looked for: {error}")
        files = (answered_record(answer, _EVENT_RESOURCES) or {}).get("evidence")
        if not isinstance(files, list):
            return self._looks.unclear(row.id, "central does not show which files a camera event has")
        for item in files:
            if isinstance(item, dict) and item.get("sha256") == going.evidence.sha256:
                return FoundAtCentral(item)
        if any(not isinstance(item, dict) or "sha256" not in item for item in files):
            return self._looks.unclear(row.id, "central shows files without their SHA-256")
        return self._looks.missed(row.id, at=asked_at)

    async def _put_off(self, row: OutboxRow, reason: str, *, unanswered: bool = False, at_central: bool = True) -> None:
        next_at = self._clock.wall().micros + int(self._backoff.wait(row.tries + 1) * 1_000_000)
        await self._outbox.failed(row, error=reason, next_at=next_at, unanswered=unanswered, at_central=at_central)

    async def _refused(self, row: OutboxRow, error: CentralRefused) -> None:
        if (doubtful := await doubt(self._client, error)) is not None:
            await self._put_off(row, str(doubtful), at_central=False)
        else:
            await self._outbox.park(row, error=str(error))
            await self._events.parked(row, str(error))
