"""Presence in the areas: kept in memory for decisions, and recorded with each change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from gateway.domain.access import Coming, holder_of
from gateway.domain.commands import actor
from gateway.domain.errors import NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.presence import (
    AntiPassback,
    Correction,
    CountCorrection,
    Forgiveness,
    Movement,
    Presence,
    card_holder,
)
from gateway.domain.shared_areas import Contradiction
from gateway.lanes.recorder import Recorder
from gateway.lanes.shared_areas import SharedAreas
from gateway.lanes.snapshots import AreaSnapshot
from gateway.runtime.clock import Clock, iso_utc
from gateway.site import Site
from gateway.store import Entry
from gateway.store.cards.cards import Cards
from gateway.store.events.presence import PresenceRows
from gateway.texts import Text, text

_RECORDED_WITHIN = 5.0


class Areas:
    """The site's areas. All lanes use one presence; each change is queued for the disk when it takes effect."""

    def __init__(self, *, site: Site, cards: Cards, rows: PresenceRows, recorder: Recorder, clock: Clock) -> None:
        self._cards = cards
        self._rows = rows
        self._recorder = recorder
        self._clock = clock
        self._presence = Presence()
        self._is_recalled = False
        self.shared: SharedAreas | None = None
        self.change(site)

    @property
    def presence(self) -> Presence:
        """The current presence, for decisions."""
        return self._presence

    def change(self, site: Site) -> None:
        """Take over the areas of a changed site file. The counts are kept."""
        self._areas = {area.id: area for area in site.areas}
        self._by_owner = site.policy.anti_passback_by == "owner"
        self.shared = self._shared_of(site)

    async def recall(self) -> None:
        """Restore the recorded presence. Raises StoreError when it cannot be read."""
        self._presence = await self._rows.load()
        self._is_recalled = True
        if self.shared is not None:
            self.shared.recalled()

    def counts(self) -> Mapping[str, int]:
        """Return how many are in each area of the site file, in its order."""
        return {area_id: self._presence.count(area_id) for area_id in self._areas}

    def areas(self) -> tuple[AreaSnapshot, ...]:
        """Return every area, in the site file's order."""
        return tuple(
            AreaSnapshot(area.id, area.name, self._presence.count(area.id), area.limit) for area in self._areas.values()
        )

    def move(self, movement: Movement) -> None:
        """Apply a passage's movement, for the next decisions. The caller records it."""
        self._presence.move(movement)

    @property
    def is_apart(self) -> bool:
        """True while the other gateways of shared areas cannot be asked."""
        return self.shared is not None and self.shared.is_apart

    def coming(self) -> Iterator[Coming]:
        """Yield the vehicles on their way in or out at other gateways of shared areas."""
        if self.shared is not None:
            yield from self.shared.coming()

    def card_renamed(self, card_id: int, new_id: int) -> None:
        """Move a card's presence to the id that central gave the card. The store has already done so."""
        self._presence.rename(card_holder(card_id), card_holder(new_id))

    async def correct_count(self, area_id: str, count: int, *, source: str) -> None:
        """Set how many are in an area, as an operator says. Return once the correction is on disk.

        Raises NotFoundError for an unknown area, ValueError for a count below 0, StoreError if the correction is not on
        disk in time: it is in force nevertheless, and stays queued.
        """
        area = self._areas.get(area_id)
        if area is None:
            raise NotFoundError(text("refused.area_unknown", area=area_id))
        correction = CountCorrection(area_id, count, self._presence.elsewhere(area_id))
        before = self._presence.count(area_id)
        said = text("event.count_corrected", area=area.name, who=actor(source), count=str(count), before=str(before))
        await self._correct(correction, EventKind.COUNT_CORRECTED, said, area=area_id, count=count, counted=before)

    async def forgive(self, card_id: int | None, *, source: str) -> None:
        """Forgive anti-passback: a card's next passage counts as its first. None forgives every card.

        Where owners are counted instead of cards, all of the owner's cards are forgiven. Raises NotFoundError for an
        unknown card, StoreError as `correct_count` does.
        """
        holder, said = "", text("event.passback_forgiven", who=actor(source))
        if card_id is not None:
            known = await self._cards.get(card_id)
            if known is None:
                raise NotFoundError(text("refused.card_unknown", card=str(card_id)))
            holder, number = holder_of(known.card, by_owner=self._by_owner), known.card.number or str(card_id)
            said = text("event.passback_forgiven_card", who=actor(source), card=number)
        await self._correct(Forgiveness(holder), EventKind.PASSBACK_FORGIVEN, said, holder=holder)

    async def _correct(self, correction: Correction, kind: EventKind, said: Text, **data: str | int) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said, data=data)
        # Through the recorder's queue, because passages that wait in it came first.
        lost = self._recorder.lost
        self._presence.correct(correction)
        shared = self.shared
        told = None if shared is None else partial(shared.corrected, correction)
        self._recorder.put(Entry(events=(event,), corrections=(correction,)), written=told)
        if not await self._recorder.recorded(lost=lost, within=_RECORDED_WITHIN):
            raise StoreError(text("refused.correction_unrecorded"))

    def _shared_of(self, site: Site) -> SharedAreas | None:
        """Return this gateway's part in the shared areas; None if there are none."""
        areas = [area.id for area in site.areas if area.shared]
        if site.fleet is None or not areas:
            self._presence.learn(elsewhere={}, opened={})
            return None
        claim_seconds = site.fleet.claim_ms / 1000
        if (kept := self.shared) is not None and kept.own == site.fleet.gateway:
            kept.change(areas, claim_seconds=claim_seconds)
            return kept
        made = SharedAreas(
            own=site.fleet.gateway,
            areas=areas,
            presence=lambda: self._presence,
            clock=self._clock,
            claim_seconds=claim_seconds,
            tell=self._tell_contradiction,
            counted=self._tell_overfull,
        )
        if self._is_recalled:
            made.recalled()
        return made

    def _tell_contradiction(self, holder: str, found: Contradiction, *, made_apart: bool) -> None:
        twice = found.after.enters and found.after.enters == found.before.enters
        area_id = found.after.enters if twice else found.after.leaves
        area = self._areas.get(area_id)
        if area is None or area.anti_passback is AntiPassback.OFF:
            return
        if area.anti_passback is not AntiPassback.HARD and not made_apart:
            return  # the decision has noted it, or allowed it after some minutes
        first, second = found.before, found.after
        ways = "_and_".join("entered" if one.enters else "left" for one in (first, second))
        said = text(
            f"event.contradicted.{ways}",
            area=area.name,
            who=holder,
            first=first.by,
            first_at=iso_utc(first.at),
            second=second.by,
            second_at=iso_utc(second.at),
        )
        self._tell(
            EventKind.PRESENCE_CONTRADICTED,
            said if found.is_certain else text("event.contradicted_uncertain", said=said),
            area=area_id,
            holder=holder,
            first=found.before.by,
            second=found.after.by,
            certain=found.is_certain,
        )

    def _tell_overfull(self) -> None:
        for area in self._areas.values():
            count = self._presence.count(area.id)
            if area.shared and area.limit is not None and count > area.limit:
                said = text("event.area_overfull", area=area.name, count=str(count), limit=str(area.limit))
                self._tell(EventKind.AREA_OVERFULL, said, area=area.id, count=count, limit=area.limit)

    def _tell(self, kind: EventKind, said: Text, **data: str | int | bool) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said, data=data)
        self._recorder.put(Entry(events=(event,)))
