"""Presence on disk says what presence in memory says, and changes with its event or not at all."""

from __future__ import annotations

import sqlite3

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.presence import CountCorrection, Forgiveness, Movement, Presence, Way
from gateway.store import Entry
from gateway.store.engine.migrations import migrate, migrations
from gateway.store.events.presence import record_correction, record_movement

ways = st.builds(Way, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "a", "b"]))
holders = st.sampled_from(["", "card:1", "card:2"])
steps = st.lists(
    st.builds(Movement, ways, st.integers(1, 99), holders, st.booleans(), st.booleans())
    | st.builds(CountCorrection, st.sampled_from(["a", "b"]), st.integers(0, 3), st.integers(0, 3))
    | st.builds(Forgiveness, holders),
    max_size=25,
)


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, migrations("site"))
    yield connection
    connection.close()


@settings(max_examples=examples(60, of=150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=steps)
def test_both_say_the_same(script, connection):
    connection.execute("DELETE FROM area")
    connection.execute("DELETE FROM holder")
    presence = Presence()
    for step in script:
        if isinstance(step, Movement):
            presence.move(step)
            record_movement(connection, step)
        else:
            presence.correct(step)
            record_correction(connection, step)
    rows = connection.execute("SELECT area_id, count, opened_at FROM area").fetchall()
    assert {area: count for area, count, _ in rows} == dict(presence.counts)
    assert {area: presence.opened_at(area) for area, _, _ in rows} == {area: at for area, _, at in rows}
    kept = {holder: (area, since) for holder, area, since in connection.execute("SELECT * FROM holder")}
    for holder in ("card:1", "card:2"):
        last = presence.whereabouts(holder)
        assert kept.get(holder) == (None if last is None else (last.area_id, last.since))


async def test_a_passage_and_its_movement_survive_together(opened, tmp_path, event):
    inward = Movement(Way(enters="garage"), 5, "card:1", opens=True)
    async with opened(tmp_path) as store:
        await store.journal.record(Entry(events=(event(),), movements=(inward,)))
        await store.journal.record(Entry(events=(event(),), corrections=(CountCorrection("garage", 9),)))
    async with opened(tmp_path) as store:
        presence = await store.presence.load()
    assert (presence.count("garage"), presence.opened_at("garage")) == (9, 5)
    assert presence.whereabouts("card:1").area_id == "garage"


@pytest.mark.parametrize(
    "fields", [{"movements": (Movement(Way(enters="a"), 1),)}, {"corrections": (CountCorrection("a", 1),)}]
)
def test_nobody_moves_without_an_event(fields):
    with pytest.raises(ValueError, match="needs the event"):
        Entry(**fields)
