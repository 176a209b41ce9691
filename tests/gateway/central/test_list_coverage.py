"""Proof by pages in a row: one that lacks a record must never be clean, whatever else is right about it."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.central.client.lists import Page, page_of
from gateway.central.push.list_search import ListCoverage
from simulation.far_ends.central import Chances
from simulation.far_ends.central.fate import Bend, Fate, fate_of
from simulation.far_ends.central.records import Table

CLEAN = Fate()


def table(size):
    made = Table(noun="event")
    for _ in range(size):
        made.add({"name": "x"})
    return made


def walk(records, *, limit, older, cap=1000, known=(), fates=(), between=lambda: None):
    """A whole walk; page by page with these fates. Gives the walk and the ids that it brought."""
    coverage, seen = ListCoverage(limit=limit, older=older, known=known), []
    for number in range(1, 200):
        fate = fates[number - 1] if number <= len(fates) else CLEAN
        batch = records.page(None, page=number, limit=min(limit, cap), shift=fate.shift)
        answer = fate.bent("events", {"success": True, "events": [*batch.records], "count": batch.count})
        read = page_of(answer, "events")
        coverage.take(read)
        seen += read.records
        if coverage.over:
            return coverage, seen
        between()
    raise AssertionError("it came to no end")


def test_down_to_a_record_that_is_known_to_be_older_a_walk_needs_no_more_pages():
    coverage, seen = walk(table(1000), limit=20, older=970)
    assert (coverage.problem, min(seen)) == ("", 961)


def test_without_such_a_record_it_goes_to_the_end():
    coverage, seen = walk(table(90), limit=20, older=None)
    assert (coverage.problem, len(seen)) == ("", 90)


def test_a_central_that_gives_fewer_than_were_asked_for_is_believed_after_a_second_page():
    coverage, seen = walk(table(1000), limit=100, older=990, cap=25)
    assert (coverage.problem, min(seen)) == ("", 951)


def test_a_list_that_shows_none_of_what_central_has_taken_is_not_believed():
    coverage, _ = walk(table(90), limit=20, older=None, known=(500, 501))
    assert "none of the records" in coverage.problem
    assert walk(table(90), limit=20, older=None, known=(500, 3))[0].problem == ""


def test_records_that_are_made_meanwhile_spoil_nothing_and_those_that_go_do():
    grows = table(1000)
    coverage, seen = walk(grows, limit=20, older=900, between=lambda: [grows.add({}) for _ in range(3)])
    assert coverage.problem == ""
    assert {*range(901, 1001)} <= {*seen}
    shrinks = table(1000)
    coverage, _ = walk(shrinks, limit=20, older=900, between=lambda: shrinks.remove(max(shrinks)))
    assert "became less" in coverage.problem


def test_a_list_in_another_order_proves_nothing_page_by_page():
    coverage = ListCoverage(limit=3, older=1)
    coverage.take(Page((5, 9, 2), {5: {}, 9: {}, 2: {}}, 3))
    assert "in the order of their ids" in coverage.problem


@pytest.mark.parametrize("bend", [Bend.TRUNCATED, Bend.DOUBLED, Bend.MISSING, Bend.MISCOUNTED])
def test_one_bad_page_of_a_short_list_is_always_seen(bend):
    for size, older in product((1, 5, 60), (None, 0, 3)):
        coverage, _ = walk(table(size), limit=20, older=older, fates=[Fate(bend=bend, where=0.4)])
        assert coverage.problem, (size, older)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**9), size=st.integers(1, 90), sought=st.integers(0, 9), limit=st.sampled_from([8, 10, 20])
)
def test_what_bad_pages_hide_is_not_said_to_be_missing(seed, size, sought, limit):
    """Down to an older record a skip between two pages may hide one; the next look has other pages, and sees it."""
    dice = random.Random(seed)
    chances = Chances(
        truncated_pages=0.1, shifted_pages=0.1, duplicated_records=0.1, missing_records=0.1, wrong_counts=0.1
    )
    records, wanted = table(size), max(1, size - sought)
    for whole in (True, False):
        fates = [fate_of(chances, dice) for _ in range(40)]
        older = None if whole else max(0, wanted - 1)
        coverage, seen = walk(records, limit=limit, older=older, fates=fates)
        if coverage.problem or wanted in seen:
            continue
        assert not whole, fates
        assert any(fate.bend is Bend.SHIFTED and fate.shift > 0 for fate in fates[1:]), fates
