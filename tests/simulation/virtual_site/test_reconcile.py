"""The comparison of both sides finds each kind of fault: every one is planted, and must be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.store import Books
from simulation.far_ends.central.record_counts import record_counts
from simulation.far_ends.central.tables import Tables
from simulation.virtual_site.outage import Acknowledged, CentralHolds, Promised, SiteHolds, faults_between

SHA = "ab" * 32


def central():
    tables = Tables()
    for number in (1, 2, 3):
        sources = {"source_name": "North", "source_id": number}
        made = tables.camera_events.add({"name": "Passed", "camera_id": 4, "date_at": f"{number}", **sources})
        tables.camera_events.change(int(made["id"]), {"evidence": [{"id": 70 + number, "sha256": SHA}]})
        tables.entries.add({"type": "entry", "device_id": 1, "date_at": f"{number}", "status": "open", **sources})
        tables.cards.add({"number": f"S{number}", "note": f"note {number}"})
    return tables


def site():
    return SiteHolds(
        camera_events={1: 5000, 2: 5001, 3: 5002},
        entries={1: (7000, "open"), 2: (7001, "open"), 3: (7002, "open")},
        files=frozenset((number, SHA) for number in (1, 2, 3)),
        cards={number: {"id": number, "number": f"S{number}", "note": f"note {number}"} for number in (1, 2, 3)},
        books=Books(accepted=12, delivered=9, dropped=1, waiting=0, parked=0, replaced=2),
        drop_events=1,
        fields={
            **{("camera_event", n): {"name": "Passed", "camera_id": 4, "date_at": f"{n}"} for n in (1, 2, 3)},
            **{("entry", n): {"type": "entry", "device_id": 1, "date_at": f"{n}"} for n in (1, 2, 3)},
        },
    )


def promised():
    return Promised(notes={"S1": "note 1"}, gone={"S9"}, files={(1, SHA)}, let_go={("access_card", 9)})


def told(tables, holds, of):
    theirs = CentralHolds(
        counts=record_counts(tables), camera_events=tables.camera_events, entries=tables.entries, cards=tables.cards
    )
    return faults_between(holds, theirs, Acknowledged(camera_events=frozenset({1, 2, 3}), promised=of))


def test_both_sides_alike_are_in_step():
    assert told(central(), site(), promised()) == ()


def twice(table, record_id):
    table.add({**table[record_id]})


def lose_file(tables):
    tables.camera_events.change(5001, {"evidence": []})


def double_file(tables):
    files = tables.camera_events[5001]["evidence"]
    tables.camera_events.change(5001, {"evidence": [*files, {**files[0], "id": 99}]})


AT_CENTRAL = {
    "camera events are not at central": lambda tables: tables.camera_events.remove(5001),
    "camera events are at central more than once": lambda tables: twice(tables.camera_events, 5001),
    "camera events are at central and not at the site": lambda t: t.camera_events.add(
        {**t.camera_events[5001], "source_id": 8}
    ),
    "camera events differ": lambda tables: tables.camera_events.change(5001, {"camera_id": 5}),
    "entries are not at central": lambda tables: tables.entries.remove(7001),
    "entries are at central more than once": lambda tables: twice(tables.entries, 7001),
    "entries are at central and not at the site": lambda tables: tables.entries.add({"type": "entry"}),
    "entries have another status at central": lambda tables: tables.entries.change(7001, {"status": "closed"}),
    "entries differ": lambda tables: tables.entries.change(7001, {"date_at": "yesterday"}),
    "files are not at central": lose_file,
    "files are at central more than once": double_file,
    "files are at central and not at the site": lambda tables: tables.camera_events.change(
        5001, {"evidence": [{"id": 72, "sha256": SHA}, {"id": 79, "sha256": "cd" * 32}]}
    ),
    "cards are only at central": lambda tables: tables.cards.add({"number": "C1"}),
    "cards are only at the site": lambda tables: tables.cards.remove(2),
    "cards differ": lambda tables: tables.cards.change(2, {"note": "otherwise"}),
    "card numbers are at central more than once": lambda tables: twice(tables.cards, 2),
    "cards lack at central what was changed last": lambda tables: tables.cards.change(1, {"note": "older"}),
    "cards that the site deleted are at central": lambda tables: tables.cards.add({"number": "S9"}),
}


@pytest.mark.parametrize("fault", AT_CENTRAL)
def test_a_fault_at_central_is_found(fault):
    tables = central()
    AT_CENTRAL[fault](tables)
    assert any(fault in sentence for sentence in told(tables, site(), promised())), told(tables, site(), promised())


def fewer(mapping):
    return {number: value for number, value in mapping.items() if number != 2}


BALANCED = site().books
AT_SITE = {
    "acknowledged camera events are not on the site's disk": lambda s: replace(s, camera_events=fewer(s.camera_events)),
    "camera events have another id at the site": lambda s: replace(s, camera_events={**s.camera_events, 2: 5002}),
    "acknowledged files are not on the site's disk": lambda s: replace(s, files=frozenset({(2, SHA), (3, SHA)})),
    "the books do not balance": lambda s: replace(s, books=replace(BALANCED, delivered=8)),
    "rows still wait": lambda s: replace(s, books=replace(BALANCED, delivered=8, waiting=1)),
    "are parked": lambda s: replace(s, books=replace(BALANCED, delivered=8, parked=1)),
    "rows counted as dropped": lambda s: replace(s, books=replace(BALANCED, delivered=10, dropped=0)),
    "events tell so": lambda s: replace(s, drop_events=0),
}


@pytest.mark.parametrize("fault", AT_SITE)
def test_a_fault_at_the_site_is_found(fault):
    found = told(central(), AT_SITE[fault](site()), promised())
    assert any(fault in sentence for sentence in found), found


def test_what_a_technician_let_go_of_must_not_be_at_central():
    of = promised()
    of.let_go.add(("camera_event", 2))
    holds = replace(site(), drop_events=2, books=replace(BALANCED, delivered=8, dropped=2))
    assert any("though they were let go of" in sentence for sentence in told(central(), holds, of))
    tables = central()
    tables.camera_events.remove(5001)
    assert told(tables, holds, of) == ()


def test_centrals_own_books_name_what_is_there_twice():
    tables = central()
    assert record_counts(tables).doubles() == ()
    twice(tables.camera_events, 5001)
    twice(tables.entries, 7001)
    double_file(tables)
    kinds = [sentence.partition(" (")[0] for sentence in record_counts(tables).doubles()]
    assert set(kinds) == {"camera event", "entry", "evidence"}
    assert record_counts(tables).as_json()["camera_events"] == 3
