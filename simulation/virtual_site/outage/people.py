"""People who change records while central is offline: at the site through its interface, at central in its tables."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gateway.domain.errors import GatewayError
from gateway.domain.evidence import KeptAs, Labels
from gateway.domain.writes import CARD_CREATE, CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE, WriteOperation
from gateway.domain.writes import JsonObject as Body
from gateway.runtime.clock import iso_utc
from simulation.far_ends.central.records import Table
from simulation.virtual_site.central import card
from simulation.virtual_site.outage.wired_sync import WiredSync

_FEWEST_CARDS = 40
_LARGEST_FILE = 60_000
_RECENT = 20
_MEDDLES = 0.15
_MISTAKES = 0.12  # a new card gets a number that central has given to another one, and refuses


@dataclass
class Promised:
    """The changes of people at the site that the gateway accepted.

    Attributes:
        notes: the note that each card must have at central in the end, by card number.
        gone: the numbers of cards that were deleted.
        unsure: the numbers of cards whose last change has an unknown outcome.
        contested: the numbers of cards that people at central changed too; the gateway's rule decides who wins.
        files: the SHA-256 of accepted files, by camera event (the site's id).
        let_go: kind and id of the records that a technician dropped, so that central must not have them.
    """

    notes: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    contested: set[str] = field(default_factory=set)
    files: set[tuple[int, str]] = field(default_factory=set)
    let_go: set[tuple[str, int]] = field(default_factory=set)


class SitePeople:
    """People at the site: they change cards of the site's own, and add files to camera events."""

    def __init__(self, *, dice: random.Random, at_central: Callable[[], Iterable[str]]) -> None:
        """Make the people. `at_central` returns the numbers of central's cards, not all of which the site knows."""
        self._dice = dice
        self._at_central = at_central
        self._number = 0
        self.promised = Promised()
        self.done = 0

    async def change_card(self, wired: WiredSync, alive: Callable[[], bool]) -> None:
        """Make one change. It counts as accepted only if the gateway was still alive when it answered."""
        cards = {number: json.loads(text) for number, text in (await wired.store.cards.records()).items()}
        ours = [number for number, card in cards.items() if str(card.get("number", "")).startswith("S")]
        self._number += 1
        throw = self._dice.random()
        known = {str(card.get("number", "")) for card in cards.values()}
        taken = sorted(number for number in {*self._at_central()} - known if number.startswith("C"))
        if taken and self._dice.random() < _MISTAKES:
            number = self._dice.choice(taken)
            self.promised.contested.add(number)
            await self._write(wired, CARD_CREATE, number, {"number": number, "note": "twice"}, note=None, alive=alive)
            return
        if not ours or throw < 0.3:
            number = f"S{self._number:06d}"
            await self._write(wired, CARD_CREATE, number, {"number": number, "note": number}, note=number, alive=alive)
            return
        record_id = self._dice.choice(ours)
        number = str(cards[record_id]["number"])
        if throw < 0.6:
            note = f"note {self._number}"
            await self._write(wired, CARD_UPDATE, number, {"id": record_id, "note": note}, note=note, alive=alive)
        elif throw < 0.85:
            status = self._dice.choice(("active", "suspended", "lost", "blocked"))
            await self._write(
                wired, CARD_LIFECYCLE, number, {"id": record_id, "status": status}, note=None, alive=alive
            )
        else:
            await self._write(wired, CARD_DELETE, number, {"id": record_id}, note=None, alive=alive, deletes=True)

    async def _write(
        self,
        wired: WiredSync,
        operation: WriteOperation,
        number: str,
        body: Body,
        *,
        note: str | None,
        alive: Callable[[], bool],
        deletes: bool = False,
    ) -> None:
        if note is not None or deletes:
            self.promised.unsure.add(number)
        try:
            await wired.writes.write(operation, body)
        except GatewayError:
            return
        if not alive():
            return
        self.done += 1
        if deletes:
            self.promised.gone.add(number)
        if note is not None:
            self.promised.notes[number] = note
        if note is not None or deletes:
            self.promised.unsure.discard(number)

    async def add_file(self, wired: WiredSync, alive: Callable[[], bool]) -> None:
        """Add a file to one of the newest camera events."""
        events = (await wired.store.camera_events.page(limit=_RECENT)).events
        if not events:
            return
        event = self._dice.choice(events)
        labels = Labels("scene.jpg", "", KeptAs.INCIDENT, "guard")
        try:
            async with wired.evidence_files.receive() as incoming:
                await incoming.write(b"\xff\xd8\xff" + self._dice.randbytes(self._dice.randrange(100, _LARGEST_FILE)))
                await incoming.finish()
                evidence = await incoming.keep(event, labels)
        except (GatewayError, OSError):
            return
        if alive():
            self.promised.files.add((event.id, evidence.sha256))


class CentralPeople:
    """People at central: they add, change and delete cards, which the site must pull."""

    def __init__(
        self, *, cards: Table, dice: random.Random, now: Callable[[], int], contested: Callable[[str], None]
    ) -> None:
        """Make the people. `contested` is called with the number of each card of the site's own that they change."""
        self._contested = contested
        self._cards = cards
        self._dice = dice
        self._now = now
        self._number = 0

    def change_card(self) -> None:
        """Make one change, of any card but those that open gates in this simulation."""
        self._number += 1
        at = iso_utc(self._now())
        if self._dice.random() < _MEDDLES:
            self._meddle(at)
            return
        others = [number for number, card in self._cards.items() if str(card.get("number", "")).startswith("C")]
        throw = self._dice.random()
        if len(others) < _FEWEST_CARDS or throw < 0.4:
            self._cards.add(card(f"C{self._number:06d}", at=at))
        elif throw < 0.8:
            note = f"central's note {self._number}"
            self._cards.change(self._dice.choice(others), {"note": note, "updated_at": at})
        else:
            self._cards.remove(self._dice.choice(others))

    def _meddle(self, at: str) -> None:
        """Change or remove a card of the site's own."""
        theirs = [number for number, card in self._cards.items() if str(card.get("number", "")).startswith("S")]
        if not theirs:
            return
        card_id = self._dice.choice(theirs)
        self._contested(str(self._cards[card_id]["number"]))
        if self._dice.random() < 0.3:
            self._cards.remove(card_id)
        else:
            self._cards.change(card_id, {"note": f"central's note {self._number}", "updated_at": at})
