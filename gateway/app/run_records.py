"""Events on the gateway itself: start, an unclean end of the last run, changes of the site file, stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.lanes.recorder import Recorder
from gateway.runtime.clock import Clock
from gateway.site.running_site import TrialStep
from gateway.store import Entry, EventFilter
from gateway.store.events.events import Events
from gateway.texts import Text, Words, text

if TYPE_CHECKING:
    from gateway.problems.watch import ProblemWatch

log = structlog.get_logger(__name__)

_STEPS = {
    TrialStep.TAKEN: EventKind.SITE_CHANGED,
    TrialStep.CONFIRMED: EventKind.SITE_CHANGE_CONFIRMED,
    TrialStep.RETURNED: EventKind.SITE_CHANGE_RETURNED,
    TrialStep.REFUSED: EventKind.SITE_CHANGE_REFUSED,
}
_LONGEST_TEXT = 1000
_MOST_RECALLED = 200
_LAST_WORDS_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecords:
    """The recording of these events, through the lanes' recorder, which keeps them in memory while the disk fails."""

    recorder: Recorder
    clock: Clock

    def started(self, site_name: str, *, was_unclean: bool, returned: str, salvaged: Iterable[str]) -> None:
        """Record the start.

        Args:
            site_name: the site's name.
            was_unclean: whether the last run ended without a stop, as by a power cut.
            returned: the sentence on a change of the site file that was reverted, "" for none.
            salvaged: sentences on damage in the store.
        """
        events = [self._event(EventKind.POWER_LOST, text("event.power_lost"))] if was_unclean else []
        events.append(self._event(EventKind.GATEWAY_STARTED, text("event.gateway_started", site=site_name)))
        if returned:
            events.append(self._event(EventKind.SITE_CHANGE_RETURNED, returned))
        events += [self._event(EventKind.STORE_DAMAGED, damage) for damage in salvaged]
        self.recorder.put(Entry(events=tuple(events)))

    def site_changed(self, step: TrialStep, said: Words, by: str) -> None:
        """Record a step of a change of the site file; `by` is who took it."""
        if len(sentence := str(said)) > _LONGEST_TEXT:
            said = sentence[:_LONGEST_TEXT]
        event = replace(self._event(_STEPS[step], said), data={"by": by})
        self.recorder.put(Entry(events=(event,)))

    def accounts_changed(self, said: Text) -> None:
        """Record a change of accounts that nobody asked for."""
        self.recorder.put(Entry(events=(self._event(EventKind.ACCOUNT_CHANGED, said),)))

    async def stopped(self) -> None:
        """Record the stop, and wait at most 5 s until all records are on disk."""
        self.recorder.put(Entry(events=(self._event(EventKind.GATEWAY_STOPPED, text("event.gateway_stopped")),)))
        if not await self.recorder.drained(within=_LAST_WORDS_SECONDS):
            log.error("records_lost_at_stop", waiting=self.recorder.waiting)

    def _event(self, kind: EventKind, said: Words) -> Event:
        stamp = self.clock.wall()
        return Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said)


async def recalled(*parts: Callable[[], Awaitable[object]]) -> None:
    """Let parts restore what the last run left. One that cannot be read does not keep the others from it."""
    for recall in parts:
        try:
            await recall()
        except StoreError as error:
            log.error("start_not_remembered", error=str(error))  # noqa: TRY400 (the sentence says it all)


async def recall_acknowledged(problems: ProblemWatch, events: Events) -> None:
    """Restore which problems people had acknowledged before the start. Raises StoreError."""
    said = await events.page(EventFilter(types=(EventKind.PROBLEM_ACKNOWLEDGED,)), limit=_MOST_RECALLED)
    await problems.recall(said.events)
