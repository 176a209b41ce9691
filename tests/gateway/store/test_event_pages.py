"""Pages of events beside what looking at every event says."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from large_store import fill_ranges

from gateway.store.engine.migrations import migrate, migrations
from gateway.store.engine.text_search import teach_search
from gateway.store.events import pages
from gateway.store.events.pages import EXACT_SEARCH, SEARCH_SECONDS, EventFilter

INSERT = (
    "INSERT INTO event (id, device_id, type, category, subcategory, name, description, date_at, clock_trusted, lane_id,"
    " data) VALUES (?, ?, ?, 1, 0, ?, ?, ?, 1, 'entry', '{}')"
)
WORDS = ("card 0042", "gate opened", "50 % of a_b")


def read_page(connection, wanted, **place):
    return pages.read_page(connection, wanted, pages.read_ranges(connection, wanted), **place)


def made(folder=":memory:"):
    connection = sqlite3.connect(folder, isolation_level=None)
    teach_search(connection)
    migrate(connection, migrations("site"))
    return connection


events = st.lists(
    st.tuples(
        st.integers(1, 700_000),  # over several coarse ranges, most of them with holes
        st.integers(0, 3),
        st.integers(101, 103),
        st.sampled_from(WORDS),
        st.integers(0, 200),
    ),
    max_size=60,
    unique_by=lambda event: event[0],
)
filters = st.builds(
    EventFilter,
    device_ids=st.lists(st.integers(0, 5), max_size=3, unique=True).map(tuple),
    types=st.lists(st.integers(100, 104), max_size=2, unique=True).map(tuple),
    search=st.sampled_from(("", "", "CARD", "a_b", "%", "zzz")),
    date_from=st.none() | st.integers(0, 200),
    date_until=st.none() | st.integers(0, 200),
)


def passes(event, wanted):
    _, device_id, kind, text, date_at = event
    return (
        (not wanted.device_ids or device_id in wanted.device_ids)
        and (not wanted.types or kind in wanted.types)
        and (wanted.date_from is None or date_at >= wanted.date_from)
        and (wanted.date_until is None or date_at < wanted.date_until)
        and wanted.search.lower() in text
    )


@given(
    rows=events,
    dense=st.integers(0, 60),
    wanted=filters,
    offset=st.integers(0, 40),
    before=st.integers(0, 700_000),
    limit=st.integers(0, 20),
    ordered=st.booleans(),
)
@settings(max_examples=examples(60, of=150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_page_is_what_looking_at_every_event_says(rows, dense, wanted, offset, before, limit, ordered):
    rows = rows + [(800_000 + n, n % 3, 101 + n % 2, WORDS[n % 3], n * 3) for n in range(dense)]
    if ordered:
        rows.sort()
        rows = [(*row[:4], place) for place, row in enumerate(rows)]
    with closing(made()) as connection:
        connection.execute("BEGIN")
        connection.executemany(INSERT, [(n, device, kind, "n", text, at) for n, device, kind, text, at in rows])
        connection.execute("COMMIT")
        connection.execute("DELETE FROM event WHERE id % 7 = 0")
        offset = 0 if before else offset
        page = read_page(connection, wanted, before=before, offset=offset, limit=limit)
    matching = sorted((row[0] for row in rows if row[0] % 7 and passes(row, wanted)), reverse=True)
    below = [number for number in matching if not before or number < before]
    assert page.complete
    assert page.count == len(matching)
    assert [event.id for event in page.events] == below[offset : offset + limit]
    more = len(below) > offset + limit and limit > 0
    assert page.next_cursor == (page.events[-1].id if more and page.events else None)


@pytest.fixture(scope="module")
def many():
    """More events than a search must look at."""
    with closing(made()) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO event"
            " SELECT i, i % 5, 101, 1, 0, 'n', CASE WHEN i IN (7, 250000) THEN 'plate AB1' ELSE 'passed' END, i, 1,"
            " 'entry', '{}', NULL, NULL FROM n",
            (300_000,),
        )
        fill_ranges(connection)
        yield connection


class Passing:
    """A clock; each look at it takes a share of the time that a search has."""

    def __init__(self, share=0.0):
        self._share = share
        self._now = 100.0

    def monotonic(self):
        self._now += self._share * SEARCH_SECONDS
        return self._now


def test_a_search_among_many_events_ends_in_time_and_goes_on_by_its_cursor(many):
    slow, quick = Passing(share=0.05).monotonic, Passing().monotonic
    first = read_page(many, EventFilter(search="ab1"), before=0, offset=0, limit=25, monotonic=slow)
    assert [event.id for event in first.events] == [250_000]
    assert (first.count, first.complete) == (1, False)
    assert first.next_cursor is not None
    assert 100_000 < first.next_cursor < 250_000
    second = read_page(many, EventFilter(search="ab1"), before=first.next_cursor, offset=0, limit=25, monotonic=quick)
    assert [event.id for event in second.events] == [7]
    assert second.next_cursor is None


def test_a_search_that_has_the_time_looks_at_every_event(many):
    page = read_page(many, EventFilter(search="ab1"), before=0, offset=0, limit=25, monotonic=Passing().monotonic)
    assert ([event.id for event in page.events], page.count, page.complete) == ([250_000, 7], 2, True)


def test_a_search_for_what_is_common_looks_at_few_events(many):
    page = read_page(many, EventFilter(search="passed"), before=0, offset=0, limit=25)
    assert len(page.events) == 25
    assert EXACT_SEARCH <= page.count < 3 * EXACT_SEARCH
    assert not page.complete
    again = read_page(many, EventFilter(search="passed"), before=page.next_cursor, offset=0, limit=25)
    assert again.events[0].id == page.events[-1].id - 1


def test_a_search_within_narrow_filters_is_of_all(many):
    page = read_page(many, EventFilter(search="ab1", date_from=1, date_until=5_000), before=0, offset=0, limit=25)
    assert ([event.id for event in page.events], page.count, page.complete) == ([7], 1, True)


def test_no_event_is_gone_through_for_a_page_deep_in_the_list(many):
    """SQLite's own count of steps: about as many as for the first page."""

    def steps(**place):
        taken = 0

        def step():
            nonlocal taken
            taken += 1

        many.set_progress_handler(step, 1000)
        read_page(many, EventFilter(), **{"before": 0, "offset": 0, "limit": 25, **place})
        many.set_progress_handler(None, 0)
        return taken

    assert steps(offset=200_000) <= steps() + 40  # thousand; a fine range is gone through at most
    assert steps(before=50_000) <= steps() + 20
