"""Search conditions on SQLite's own columns."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.engine.text_search import (
    folded,
    folded_plate,
    holds,
    plate_in_text,
    search_in,
    searched_plate,
    teach_search,
)

texts = st.text(st.sampled_from("aAbB1 2-._%\\'ßSsİ\u0131IiKk\u03a3\u03c3\u03c2üÜu\u0308Жж"), max_size=8)


@pytest.fixture(scope="module")
def connection():
    with closing(sqlite3.connect(":memory:")) as made:
        teach_search(made)
        yield made


@given(text=texts, search=texts.filter(bool))
def test_the_condition_finds_what_the_domain_says(connection, text, search):
    match = search_in(search, texts=("text",))
    (found,) = connection.execute(f"SELECT {match.sql} FROM (SELECT ? AS text)", (*match.values, text)).fetchone()
    held = holds(text, folded(search), plate_in_text(search))
    assert found or not held
    assert held or not found or not text.isascii()  # a combining mark may follow what is found literally


@given(text=texts, search=texts.filter(bool))
def test_a_column_of_plates_is_searched_in_any_spelling(connection, text, search):
    match = search_in(search, plates=("text",))
    (found,) = connection.execute(f"SELECT {match.sql} FROM (SELECT ? AS text)", (*match.values, text)).fetchone()
    if searched_plate(search) and searched_plate(search) in folded_plate(text):
        assert found


def test_no_text_finds_all_and_a_null_character_nothing():
    assert search_in("", texts=("text",)).sql == "1"
    assert search_in("a\0", texts=("text",)).sql == "0"
