"""Pull of central's devices and cameras into the site's own lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.central.client.list_proof import Tally, is_large, read_waiting, waiting_text
from gateway.central.client.lists import ListReader
from gateway.central.client.page_size import MODEST, PageSize
from gateway.central.pull.absence_proof import Asked, ById
from gateway.central.push.upstream import Upstream
from gateway.domain.record_marks import lookup_of
from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject
from gateway.store.outbox.record_kinds import record_text

Noun = Literal["device", "camera"]


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
        self._by_id = ById(client=upstream.client, path=f"/v1/{noun}", names=(noun,))
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

    async def _remove(self, due: frozenset[int], *, tally: Tally) -> Asked:
        """Remove records that central no longer has; return what it said about them when asked for them by id.

        If the list contradicts itself, a record is removed only if central says that it does not have that record.
        """
        if not due:
            return Asked()
        asked = await self._by_id.ask_some(due, listed=sorted(tally.ids))
        proven = asked.gone
        if not tally.problem and not asked.there:
            proven |= asked.unsaid | asked.unasked
        if proven:
            await self._records.pulled({}, removed=proven, now=self._clock.wall().micros)
        return asked
