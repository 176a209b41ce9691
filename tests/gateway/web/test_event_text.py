"""The text of events as SQLite makes it, beside what is made of the events themselves."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from gateway.domain.events import RecordedEvent
from gateway.store.engine.migrations import migrate, migrations
from gateway.store.engine.text_search import teach_search
from gateway.store.events.pages import EventFilter, read_page, read_ranges
from gateway.store.events.rows import COLUMNS, JSON_TEXTS, RECORDED
from gateway.web.answers import EventRecord
from gateway.web.http.errors import joined_parts, success
from gateway.web.operations.events import event_record

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ('"\\/', "\x00\x01\x1f\x7f\x80\u2028", "\b\t\n\f\r", "é𝄞\ufeff\uffff", "'%s", "</script>")
)
moments = st.integers(FIRST, LAST) | st.sampled_from((FIRST, -1, 0, 999, 1_000, 999_999, 1_000_000, LAST))
numbers = st.integers(0, 3) | st.just(2**63 - 1)
events = st.lists(
    st.builds(
        RecordedEvent,
        id=st.integers(4_080, 4_112) | st.integers(1, 300_000) | st.just(2**62),
        device_id=numbers,
        type=numbers,
        category=numbers,
        subcategory=numbers,
        name=texts,
        description=texts,
        date_at=moments,
        clock_trusted=st.booleans(),
        lane_id=texts,
        data=texts,
        recorded_at=st.none() | moments,
    ),
    max_size=12,
    unique_by=lambda event: event.id,
)


@pytest.fixture(scope="module")
def store():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, migrations("site"))
        teach_search(connection)
        yield connection


@contextmanager
def holding(connection, recorded):
    """The store with these events; afterwards without them."""
    connection.execute("BEGIN")
    try:
        connection.executemany(
            f"INSERT INTO event ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [tuple(getattr(event, name) for name in COLUMNS.split(", ")) for event in recorded],
        )
        yield connection
    finally:
        connection.rollback()


@given(
    recorded=events,
    wanted=st.sampled_from(
        (EventFilter(), EventFilter(), EventFilter(types=(0, 1)), EventFilter(device_ids=(2,)), EventFilter(search="e"))
    ),
    offset=st.integers(0, 5),
    limit=st.integers(0, 8),
)
@settings(max_examples=120, deadline=None)
def test_the_text_of_a_page_is_that_of_its_events_byte_for_byte(store, recorded, wanted, offset, limit):
    with holding(store, recorded) as connection:
        passing = read_ranges(connection, wanted)
        place = {"before": 0, "offset": offset, "limit": limit}
        page = read_page(connection, wanted, passing, **place, form=RECORDED)
        told = read_page(connection, wanted, passing, **place, form=JSON_TEXTS)
    assert (told.last, told.count, told.next_cursor) == (page.last, page.count, page.next_cursor)
    records = [event_record(event) for event in page.events]
    assert b",".join(told.events) == b",".join(map(to_json, records))
    answer = b"".join(joined_parts("events", told.events, count=told.count))
    assert answer == success(events=records, count=page.count).body


@given(
    recorded=events, before=st.just(0) | st.integers(0, 300_000), offset=st.integers(0, 14), limit=st.integers(0, 14)
)
@settings(max_examples=60, deadline=None)
def test_the_one_statement_for_all_events_finds_what_there_is(store, recorded, before, offset, limit):
    offset = 0 if before else offset
    with holding(store, recorded) as connection:
        connection.execute("DELETE FROM event WHERE id % 5 = 0")
        page = read_page(connection, EventFilter(), None, before=before, offset=offset, limit=limit)
    there = sorted((event for event in recorded if event.id % 5), key=lambda event: -event.id)
    below = [event for event in there if not before or event.id < before]
    assert page.events == tuple(below[offset : offset + limit])
    assert page.count == len(there)
    assert page.next_cursor == (page.events[-1].id if len(below) > offset + limit and limit else None)


@pytest.mark.parametrize("late", [None, 5])
def test_a_record_has_the_fields_that_are_published(store, late):
    event = RecordedEvent(1, 2, 3, 4, 5, "n", "d", 6, True, "lane", "{}", late)
    with holding(store, [event]) as connection:
        (told,) = read_page(connection, EventFilter(), None, before=0, offset=0, limit=1, form=JSON_TEXTS).events
    published = set(EventRecord.model_fields)
    assert set(json.loads(told)) == (published if late else published - {"recorded_at"})


def test_a_page_of_long_events_comes_in_parts(store):
    long = [RecordedEvent(n, 1, 1, 1, 1, "n", "x" * 10_000, 0, True, "lane", "{}") for n in range(1, 21)]
    with holding(store, long) as connection:
        page = read_page(connection, EventFilter(), None, before=0, offset=0, limit=20, form=JSON_TEXTS)
    assert [part.count(b'"id"') for part in page.events] == [4, 4, 4, 4, 4]
    whole = b"".join(joined_parts("events", page.events, count=20, next_cursor=1))
    assert [event["id"] for event in json.loads(whole)["events"]] == list(range(20, 0, -1))
