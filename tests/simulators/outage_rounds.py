"""A bad line to central, over real sockets and processes: `python tests/simulators/outage_rounds.py --seconds 240`.

A simulated field and a gateway run as processes of their own. From a seed, central fails in every manner that it knows,
is away for a while, and the gateway is killed and started again; meanwhile vehicles pass, people change cards at the
site and at central, and add files. Then the line is good, what waits goes up, and both sides must hold the same, each
thing once, and what people were told is done must be done.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outage_desk import Technician
from outage_scene import CARDS, Gone, Scene, ask, until

from simulation.demo.field import CENTRAL_FILE
from simulation.demo.scene import GOOD_CARDS, LANES
from simulation.far_ends.central.record_counts import record_counts
from simulation.far_ends.central.tables import Tables
from simulation.virtual_site.outage import BAD_LINE, Acknowledged, CentralHolds, Promised, faults_between, site_holds

WHOLE_PULLS = 2  # a large removal is carried out by the second that asks for it
CALM = {"chances": {}}


@dataclass
class Outcome:
    """The result of a run. `faults`: every way in which the two sides are not in step."""

    seed: int
    faults: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    held: dict[str, int] = field(default_factory=dict)
    log: str = ""


class People:
    """The people who act meanwhile; the acts that were acknowledged to them are kept in `promised`."""

    def __init__(self, scene: Scene, dice: random.Random, counts: Counter[str]) -> None:
        self._scene = scene
        self._dice = dice
        self._counts = counts
        self._number = 0
        self._ours: dict[str, int] = {}
        self.promised = Promised()
        self.shas: set[str] = set()
        """Of the files that were taken."""

    def act(self) -> None:
        """One thing, of whatever kind."""
        self._dice.choice(
            (self.drive, self.drive, self.change_card, self.change_card, self.add_file, self.at_central)
        )()

    def drive(self) -> None:
        """A vehicle comes to a gate."""
        lane, card = self._dice.choice(LANES[:2]).lane_id, self._dice.choice(GOOD_CARDS).sent
        with contextlib.suppress(Gone):
            ask(self._scene.ready.control_url, "POST", "/present", {"lane_id": lane, "card": card})
            self._counts["vehicles"] += 1

    def change_card(self) -> None:
        """Somebody at the site makes, changes or deletes a card of the site's own."""
        self._number += 1
        throw = self._dice.random()
        if not self._ours or throw < 0.4:
            number = f"S{self._number:06d}"
            answer = self._tell(number, "PUT", {"number": number, "note": number})
            if answer is not None:
                self._ours[number] = answer["id"]
                self.promised.notes[number] = number
            return
        number = self._dice.choice(sorted(self._ours))
        if throw < 0.5:
            self.make_a_mistake()
        elif throw < 0.85:
            note = f"note {self._number}"
            if self._tell(number, "PATCH", {"id": self._ours[number], "note": note}) is not None:
                self.promised.notes[number] = note
        elif self._tell(number, "DELETE", {"id": self._ours.pop(number)}) is not None:
            self.promised.gone.add(number)

    def make_a_mistake(self) -> None:
        """A new card gets the number of one of central's, which central will refuse."""
        with contextlib.suppress(Gone):
            cards = self._scene.call("POST", "/v1/access/list", {"search": "C0", "page_limit": 100})["access_cards"]
            theirs = [card["number"] for card in cards if str(card.get("number", "")).startswith("C")]
            if theirs:
                number = self._dice.choice(theirs)
                self.promised.contested.add(number)
                self._scene.call("PUT", "/v1/access", {"number": number, "note": "twice"})
                self._counts["cards with a number that central refuses"] += 1

    def _tell(self, number: str, method: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The card in the answer; None when nobody knows what became of it."""
        self.promised.unsure.add(number)
        try:
            answer = self._scene.call(method, "/v1/access", body)
        except Gone:
            self._counts["answers that people did not get"] += 1
            return None
        self.promised.unsure.discard(number)
        self._counts["cards changed at the site"] += 1
        return answer.get("access_card") or answer.get("access") or body

    def add_file(self) -> None:
        """Somebody adds a file to a camera event."""
        with contextlib.suppress(Gone):
            events = self._scene.call("POST", "/v1/camera/event/list", {"page_limit": 20})["events"]
            if not events:
                return
            event = self._dice.choice(events)["id"]
            content = b"\xff\xd8\xff" + self._dice.randbytes(self._dice.randrange(1000, 400_000))
            head = f'--part\r\nContent-Disposition: form-data; name="id"\r\n\r\n{event}\r\n'
            head += '--part\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
            form = head.encode() + content + b"\r\n--part--\r\n"
            self._scene.call("POST", "/v1/camera/event/evidence", form=form)
            self._counts["files"] += 1
            self.shas.add(hashlib.sha256(content).hexdigest())

    def at_central(self) -> None:
        """Somebody at central makes, changes or deletes a card of central's own."""
        self._number += 1
        with contextlib.suppress(Gone):
            throw = self._dice.random()
            if throw < 0.6:
                card = {"number": f"C{self._number:06d}{secrets.token_hex(2)}", "note": "central's"}
                self._scene.at_central("PUT", "/v1/access", card)
            else:
                card_id = 4001 + self._dice.randrange(10, CARDS)
                body = {"id": card_id, "note": f"central's note {self._number}"}
                method, sent = ("PATCH", body) if throw < 0.9 else ("DELETE", {"id": card_id})
                self._scene.at_central(method, "/v1/access", sent)
            self._counts["cards changed at central"] += 1


def run(folder: Path, *, seconds: float, seed: int, kills: int | None = None) -> Outcome:
    """One run; `kills` None: one in about fifteen seconds."""
    dice, outcome = random.Random(seed), Outcome(seed)
    scene = Scene(folder, seed=seed)
    try:
        scene.start()
        until(lambda: scene.call("POST", "/v1/access/list", {})["count"] >= CARDS, "cards come from central")
        people = People(scene, dice, outcome.counts)
        _make_trouble(scene, people, dice, outcome, seconds=seconds, kills=kills)
        _settle(scene, people, dice, outcome.counts)
        outcome.counts += Counter(scene.control("GET", "/demo/record-counts")["happened"])
        assert scene.stop_gateway() == 0, scene.tail()
    finally:
        scene.close()
        outcome.log = scene.tail()
    _compare(scene, people, outcome)
    return outcome


def _make_trouble(
    scene: Scene, people: People, dice: random.Random, outcome: Outcome, *, seconds: float, kills: int | None
) -> None:
    began = time.monotonic()
    times = round(seconds / 15) if kills is None else kills
    kill_at = sorted(began + dice.uniform(0.1, 0.9) * seconds for _ in range(times))
    turn_at = began
    while time.monotonic() < began + seconds:
        if time.monotonic() >= turn_at:
            turn_at = time.monotonic() + dice.uniform(1.0, max(2.0, seconds / 12))
            outcome.counts += Counter(scene.control("GET", "/demo/record-counts")["happened"])
            scene.control("POST", "/demo/faults", _next_faults(dice, outcome.counts))
        if kill_at and time.monotonic() >= kill_at[0]:
            kill_at.pop(0)
            scene.kill_gateway()
            outcome.counts["kill -9"] += 1
            people.drive()
            scene.start()
        people.act()
        time.sleep(dice.uniform(0.02, 0.3))  # the pace of people


def _next_faults(dice: random.Random, counts: Counter[str]) -> dict[str, Any]:
    """Return central's faults for the next while."""
    throw = dice.random()
    if throw < 0.35:
        counts["central away"] += 1
        return {"down": True} if throw < 0.25 else {"chances": {"half_open": 1}, "half_open_seconds": 30}
    if throw < 0.45:
        counts["line leads to a portal"] += 1
        return {"error": "portal"}
    if throw < 0.55:
        return CALM
    counts["bad line"] += 1
    worse = {name: min(0.15, 3 * chance) for name, chance in BAD_LINE.model_dump().items()}
    spread = {"latency_seconds": 0.002, "latency_spread_seconds": 0.05, "slow_body_seconds": 1, "half_open_seconds": 5}
    return {"chances": worse, "seed": dice.randrange(10**6), "clock_skew_seconds": dice.uniform(-90, 90), **spread}


def _settle(scene: Scene, people: People, dice: random.Random, counts: Counter[str]) -> None:
    """The line is good: what waits goes up, and what changed comes down."""
    scene.control("POST", "/demo/faults", CALM)
    until(lambda: scene.call("POST", "/v1/device", {"id": LANES[0].gate})["device"]["position"] == "closed", "the gate")
    desk = Technician(scene, people.promised, dice, counts)
    until(desk.all_is_up, "what waits is up")
    begun = _pulls(scene)
    until(lambda: _pulls(scene) >= begun + WHOLE_PULLS + 1, "cards are pulled again")
    until(desk.all_is_up, "what waits is up")


def _pulls(scene: Scene) -> int:
    """Return the number of pulls that have begun: each asks for the cameras once."""
    return int(scene.control("GET", "/demo/record-counts")["asked"].get("POST /v1/camera/list", 0))


def _compare(scene: Scene, people: People, outcome: Outcome) -> None:
    tables = Tables()
    tables.load(scene.folder / "field" / CENTRAL_FILE)
    site = asyncio.run(site_holds(scene.data))
    central = CentralHolds(
        counts=record_counts(tables), camera_events=tables.camera_events, entries=tables.entries, cards=tables.cards
    )
    faults = list(faults_between(site, central, Acknowledged(frozenset(), people.promised)))
    if lost := people.shas - {sha for _, sha in site.files}:
        faults.append(f"{len(lost)} files that were taken are not on the site's disk")
    outcome.faults = tuple(faults)
    outcome.held = {
        "camera events": len(site.camera_events),
        "entries": len(site.entries),
        "files": len(site.files),
        "cards": len(site.cards),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
    folder = Path(tempfile.mkdtemp(prefix="eg-"))
    sys.stdout.write(f"seed {seed}, in {folder}\n")
    outcome = run(folder, seconds=asked.seconds, seed=seed)
    for name, count in sorted(outcome.counts.items()):
        sys.stdout.write(f"{count:7} {name}\n")
    sys.stdout.write(f"both sides hold {outcome.held}\n")
    for fault in outcome.faults:
        sys.stdout.write(f"NOT IN STEP: {fault}\n")
    if outcome.faults:
        sys.stdout.write(f"seed {seed}; everything is still in {folder}\n{outcome.log}\n")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write("in step\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
