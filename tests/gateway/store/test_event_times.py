"""Times of events that a clock stamped before it was set: corrected as soon as it is known by how much it was wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.passages import Passage, PassageOutcome
from gateway.runtime.clock import ClockOffset
from gateway.store import Entry, EventFilter, RecordTimes, Store
from gateway.store.events import journal

SECOND = 1_000_000
UP = 60 * SECOND
WRONG = ClockOffset("run", 40 * SECOND, trusted=False)  # 1970: a box without a battery
TRUE = ClockOffset("run", 1_767_268_800 * SECOND, trusted=True)


class SetOffset:
    """The offset of a clock that a test sets."""

    def __init__(self):
        self.now = WRONG

    def __call__(self):
        return self.now


@pytest.fixture
def offset():
    return SetOffset()


@pytest.fixture
async def store(tmp_path, offset):
    store = Store(folder=tmp_path, site_name="North", sends=False, times=RecordTimes(offset=offset))
    await store.open()
    yield store
    await store.close()


def stamped(event, offset, seconds, *, wrong=WRONG):
    at = UP + seconds * SECOND + (wrong if offset is WRONG else offset).micros
    return event(f"after {seconds} s", date_at=at, clock_trusted=offset.trusted)


async def shown(store, wanted=None):
    page = await store.events.page(wanted or EventFilter(), limit=200)
    return [(one.date_at - TRUE.micros - UP, one.clock_trusted) for one in page.events[::-1]]


async def test_events_and_passages_move_to_the_clock_once_it_is_set(store, event, offset):
    for seconds in (1, 2):
        await store.journal.record(Entry(events=(stamped(event, WRONG, seconds),)))
    begin, end = (WRONG.micros + UP + seconds * SECOND for seconds in (1, 3))
    passage = Passage("in", "entry", PassageOutcome.PASSED, begin, end, clock_trusted=False, card_id=5)
    await store.journal.record(Entry(events=(stamped(event, WRONG, 3),), passage=passage))
    offset.now = TRUE
    await store.journal.record(Entry(events=(stamped(event, TRUE, 4),)))
    assert await shown(store) == [(n * SECOND, True) for n in (1, 2, 3, 4)]
    (kept,) = await store.passages.page()
    by = TRUE.micros - WRONG.micros
    assert kept.passage == replace(passage, started_at=begin + by, ended_at=end + by, clock_trusted=True)
    span = EventFilter(date_from=TRUE.micros + UP + 2 * SECOND, date_until=TRUE.micros + UP + 4 * SECOND)
    assert [at for at, _ in await shown(store, span)] == [2 * SECOND, 3 * SECOND]


async def test_a_clock_that_was_set_twice_moves_each_part_by_its_own(store, event, offset):
    other = replace(WRONG, micros=WRONG.micros + 3600 * SECOND)
    await store.journal.record(Entry(events=(stamped(event, WRONG, 1),)))
    offset.now = other
    await store.journal.record(Entry(events=(stamped(event, WRONG, 2, wrong=other),)))
    offset.now = TRUE
    await store.journal.record(Entry(events=(stamped(event, TRUE, 3),)))
    assert await shown(store) == [(n * SECOND, True) for n in (1, 2, 3)]


async def test_many_events_are_corrected_a_part_at_a_time(store, event, offset, monkeypatch):
    monkeypatch.setattr(journal, "AT_A_TIME", 1)
    for seconds in range(1, 8):
        await store.journal.record(Entry(events=(stamped(event, WRONG, seconds),)))
    offset.now = TRUE
    for seconds in range(8, 16):
        await store.journal.record(Entry(events=(stamped(event, TRUE, seconds),)))
    assert await shown(store) == [(n * SECOND, True) for n in range(1, 16)]


async def test_events_of_another_run_of_the_machine_stay_as_they_were_stamped(store, event, offset):
    offset.now = TRUE
    await store.journal.record(Entry(events=(event("before", date_at=5 * SECOND, clock_trusted=False),)))
    await store.journal.record(Entry(events=(stamped(event, TRUE, 1),)))
    (before, _) = await shown(store)
    assert before[1] is False
