"""A lane's decisions over a real store: cards in memory and from the file, movements, corrections, notices."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from at_work import opened_store
from waiting import until

from gateway.domain.access import AccessRules, Coming, Reason, Stance
from gateway.domain.credentials import Card, CardStatus, Credential, digits_alias, plate_alias, text_alias
from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.domain.presence import Way
from gateway.lanes.access_rules import access_rules
from gateway.lanes.decisions import LOCKED_SECONDS, TRIES, DecisionContext, Decisions, PinTries
from gateway.lanes.machine import messages as m
from gateway.lanes.presence import Areas
from gateway.lanes.recorder import Recorder
from gateway.runtime.clock import Stamp
from gateway.site import Site
from gateway.store import Entry, EventFilter, Store, StoredCard

NOW = 1_769_774_400_000_000
ARRIVED = Stamp(NOW, trusted=True)
SITE = {
    "site": {"name": "North", "timezone": "America/Toronto"},
    "policy": {"anti_passback_by": "owner"},
    "areas": [{"id": "garage", "name": "Garage", "anti_passback": "hard", "limit": 2}],
    "schedules": [{"id": "day", "windows": [{"days": ["fri"], "start": "06:00", "end": "24:00"}]}],
    "holidays": [{"date": "2026-12-25"}],
    "lanes": [
        {
            "id": "in",
            "name": "In",
            "gate": 101,
            "inputs": [
                {"role": "arming", "device": 101, "point": "a"},
                {"role": "closing", "device": 101, "point": "b"},
            ],
            "inside": "garage",
            "schedule": "day",
            "doubt": {"no_cards": "open"},
        }
    ],
}


class FixedClock:
    def __init__(self):
        self.at = 0.0

    def monotonic(self):
        return self.at

    def wall(self):
        return Stamp(NOW, trusted=True)


class Desk:
    """The collaborators of a lane's decisions."""

    def __init__(self, store, *, site=SITE, **lane):
        self.site = Site.model_validate({**site, "lanes": [{**site["lanes"][0], **lane}]})
        self.store = store
        self.clock = FixedClock()
        self.recorder = Recorder(journal=store.journal, clock=self.clock)
        self.granted_vehicles = ()
        self.areas = Areas(
            site=self.site, cards=store.cards, rows=store.presence, recorder=self.recorder, clock=self.clock
        )
        context = DecisionContext(
            cards=store.cards,
            areas=self.areas,
            clock=self.clock,
            recording=lambda: True,
            has_central=True,
            pin_tries=PinTries(),
            granted_vehicles=lambda: self.granted_vehicles,
            grants=store.grants.of_lane,
        )
        rules = access_rules(self.site, self.site.lanes[0])
        self.decisions = Decisions(context, rules=rules, second_within=30.0)

    def ask(self, text, direction="entry", visit=1, **more):
        return self.decisions.at_once(m.Decide(1, Credential(text=text), direction, Stamp(visit, trusted=True), **more))

    def type_pin(self, pin, text="4"):
        """A decision and what is told beside it, as the runner asks for both."""
        wanted = m.Decide(1, Credential(text=text), "entry", ARRIVED, pin)
        decision = self.decisions.at_once(wanted)
        told = [event.kind for entry in self.decisions.noticed(wanted, decision) for event in entry.events]
        return decision, told

    async def pass_through(self, decision, outcome=PassageOutcome.PASSED):
        holder = decision.holder if decision else ""
        passage = Passage("in", "entry", outcome, NOW, NOW, clock_trusted=True, holder=holder)
        event = Event(EventKind.VEHICLE_PASSED, NOW, clock_trusted=True, text="A vehicle passed.")
        self.recorder.put(self.decisions.with_movement(Entry(events=(event,), passage=passage)))
        assert await self.recorder.drained(within=30)


@asynccontextmanager
async def open_store(folder):
    async with opened_store(folder) as store:
        await store.cards.apply(
            put=[
                StoredCard(Card(1, "1", owner="9", aliases=(text_alias("1"),)), "{}"),
                StoredCard(Card(2, "2", owner="9", duress=True, aliases=(text_alias("2"),)), "{}"),
                StoredCard(Card(3, "X", CardStatus.BLOCKED, aliases=(plate_alias("BAD1"),)), "{}"),
                StoredCard(Card(4, "4", pin="1299", aliases=(text_alias("4"),)), "{}"),
            ],
            now=1,
        )
        await until(lambda: store.cards.is_indexed)
        yield store


@pytest.fixture
async def store(tmp_path):
    async with open_store(tmp_path) as store:
        yield store


@pytest.fixture
async def open_desk(store):
    tasks = []

    def make(**fields):
        desk = Desk(store, **fields)
        tasks.append(asyncio.get_running_loop().create_task(desk.recorder.run()))
        return desk

    yield make
    for task in tasks:
        task.cancel()


async def test_a_passage_moves_its_owner_and_a_correction_lets_them_in_again(open_desk, store):
    desk = open_desk()
    decision = desk.ask("1")
    assert decision.granted
    await desk.pass_through(decision, outcome=PassageOutcome.BACKED_OUT)
    assert desk.ask("1").granted, "who backed out may come again"
    await desk.pass_through(decision)
    assert dict(desk.areas.counts()) == {"garage": 1}
    assert desk.ask("1").reason is Reason.ANTI_PASSBACK
    assert desk.ask("2").reason is Reason.ANTI_PASSBACK, "the same owner"
    assert desk.ask("1", "exit").granted
    await desk.areas.forgive(2, source="user:tech")
    assert desk.ask("1").granted
    await desk.areas.correct_count("garage", 2, source="user:tech")
    assert desk.ask("1").reason is Reason.AREA_FULL
    with pytest.raises(NotFoundError):
        await desk.areas.correct_count("roof", 2, source="user:tech")
    page = await store.events.page(EventFilter())
    assert [event.description for event in page.events[:2]] == [
        "Garage: tech set the count to 2 (it was 1)",
        "tech forgave anti-passback for card 2; the next passage counts as the first",
    ]


async def test_presence_is_there_again_after_a_start(open_desk, store):
    before = open_desk()
    await before.pass_through(before.ask("1"))
    await before.pass_through(None, outcome=PassageOutcome.UNAUTHORISED)
    after = open_desk()
    assert after.ask("1").granted
    await after.areas.recall()
    assert dict(after.areas.counts()) == {"garage": 2}
    assert after.ask("1").reason is Reason.ANTI_PASSBACK


async def test_zeros_before_a_number_do_not_matter_unless_two_cards_differ_in_nothing_else(open_desk, store):
    desk = open_desk()
    cards = [Card(11, "0044", aliases=(text_alias("0044"), digits_alias("0044"))), Card(12, "44", aliases=("text:44",))]
    await store.cards.apply(put=[StoredCard(cards[0], "{}")], now=1)
    await until(lambda: store.cards.is_indexed)
    for text in ("44", "0044", "000044"):
        assert desk.ask(text).card.card_id == 11
        looked_up = await desk.decisions.looked_up(m.Decide(1, Credential(text=text), "entry", ARRIVED))
        assert looked_up.card.card_id == 11
    await store.cards.apply(put=[StoredCard(cards[1], "{}")], now=1)
    await until(lambda: store.cards.is_indexed)
    assert [desk.ask(text).card.card_id for text in ("44", "0044")] == [12, 11]
    assert desk.ask("000044").reason is Reason.AMBIGUOUS_CREDENTIAL


async def test_two_credentials_of_one_visit(open_desk):
    desk = open_desk(two_credentials=True)
    assert desk.ask("1").reason is Reason.SECOND_CREDENTIAL_AWAITED
    assert desk.ask("1").reason is Reason.SECOND_CREDENTIAL_AWAITED
    assert desk.ask("2", visit=2).reason is Reason.SECOND_CREDENTIAL_AWAITED, "another vehicle"
    assert desk.ask("1", visit=2).granted


async def test_a_first_credential_waits_for_its_second_only_so_long(open_desk):
    desk = open_desk(two_credentials=True)
    assert desk.ask("1").reason is Reason.SECOND_CREDENTIAL_AWAITED
    desk.clock.at = 30.0
    assert desk.ask("2").reason is Reason.SECOND_CREDENTIAL_AWAITED
    assert desk.ask("1").granted, "card 2 is the first now"


async def test_a_blocked_plate_stops_the_card_of_its_vehicle(open_desk):
    desk = open_desk()
    assert desk.ask("1", plates=("GOOD1",)).granted
    assert desk.ask("1", plates=("GOOD1", "BAD1")).reason is Reason.BLOCKED_PLATE
    wanted = m.Decide(1, Credential(text="1"), "entry", ARRIVED, plates=("BAD1",))
    assert (await desk.decisions.looked_up(wanted)).reason is Reason.BLOCKED_PLATE


async def test_those_on_their_way_in_count_as_inside(open_desk):
    desk = open_desk()
    inward = Way(enters="garage")
    desk.granted_vehicles = (Coming("other", inward), Coming("other", inward.back))
    assert desk.ask("1").granted
    desk.granted_vehicles += (Coming("other", inward),)
    assert desk.ask("1").reason is Reason.AREA_FULL


async def test_a_card_on_its_way_in_at_another_lane_does_not_come_in_here(open_desk):
    desk = open_desk()
    desk.granted_vehicles = (Coming("other", Way(enters="garage"), "owner:9"),)
    decision = desk.ask("1")
    assert decision.reason is Reason.ANTI_PASSBACK
    assert decision.trace[-1].seen == "on its way in at other"
    assert desk.ask("1", "exit").granted, "out is another way"


async def test_pins(open_desk):
    desk = open_desk(pin=True)
    assert desk.type_pin("1299") == (desk.type_pin("1299")[0], [])
    assert desk.type_pin("1299")[0].granted
    assert desk.type_pin("")[0].reason is Reason.PIN_MISSING
    assert desk.type_pin("1298")[0].reason is Reason.WRONG_PIN
    assert desk.type_pin("1299", text="1")[0].reason is Reason.NO_PIN
    decision, told = desk.type_pin("1290")
    assert decision.granted, "whoever is forced must not be seen to call for help"
    assert told == [EventKind.DURESS_SIGNALLED]
    assert "1299" not in repr(decision), "a PIN is shown nowhere"


async def test_wrong_pins_lock_the_card_for_a_while(open_desk):
    desk = open_desk(pin=True)
    told = [desk.type_pin(f"000{number}")[1] for number in range(TRIES)]
    assert told == [[]] * (TRIES - 1) + [[EventKind.PIN_LOCKED]]
    assert desk.type_pin("1299")[0].reason is Reason.PIN_LOCKED
    assert desk.type_pin("1299")[0].reason is Reason.PIN_LOCKED, "trying does not lengthen it"
    desk.clock.at = LOCKED_SECONDS
    assert desk.type_pin("1299")[0].granted
    assert desk.type_pin("0000") == (desk.type_pin("0000")[0], []), "the right PIN began the count anew"


async def test_a_pin_lane_does_not_open_to_a_plate(open_desk):
    desk = open_desk(pin=True)
    decision = desk.decisions.at_once(m.Decide(1, Credential(plate="BAD1"), "entry", ARRIVED))
    assert decision.reason is Reason.BLOCKED_PLATE


async def test_duress_is_told_and_the_gate_opens(open_desk):
    desk = open_desk()
    wanted = m.Decide(1, Credential(text="2"), "entry", ARRIVED)
    decision = desk.decisions.at_once(wanted)
    assert decision.granted
    (entry,) = desk.decisions.noticed(wanted, decision)
    assert [event.kind for event in entry.events] == [EventKind.DURESS_SIGNALLED]


async def test_the_file_says_what_memory_says(open_desk):
    desk = open_desk()
    for text in ("1", "2", "3"):
        wanted = m.Decide(1, Credential(text=text), "entry", ARRIVED)
        assert await desk.decisions.looked_up(wanted) == desk.decisions.at_once(wanted)


async def test_cards_that_cannot_be_read(tmp_path):
    store = Store(folder=tmp_path, site_name="North", sends=False)
    wanted = m.Decide(1, Credential(text="1"), "entry", ARRIVED)
    desk = Desk(store)
    assert desk.decisions.at_once(wanted) is None
    assert (await desk.decisions.looked_up(wanted)).reason is Reason.FAIL_OPEN
    desk = Desk(store, doubt={"no_cards": "secure"})
    assert (await desk.decisions.looked_up(wanted)).reason is Reason.STORE_UNAVAILABLE


def test_rules_of_a_lane():
    site = Site.model_validate(SITE)
    rules = access_rules(site, site.lanes[0])
    assert (rules["entry"].way.enters, rules["exit"].way.leaves) == ("garage", "garage")
    assert rules["entry"].ladder.no_cards is Stance.OPEN
    assert rules["entry"].schedule is not None
    assert rules["entry"].calendar.is_open(rules["entry"].schedule, NOW)
    assert isinstance(rules["exit"], AccessRules)
