"""Belief in walks over a list, and the records that may be removed."""

from __future__ import annotations

import pytest

from gateway.central.client.answers import CentralFailed
from gateway.central.client.lists import Removal, Tally, judge_removal, page_of, read_waiting, waiting_text


def take(tally, answer):
    page = page_of(answer, "access_cards")
    return tally.take(page.ids, page.count)


def walk(*pages):
    tally = Tally("access_cards")
    for count, ids in pages:
        take(tally, {"success": True, "access_cards": [{"id": card_id} for card_id in ids], "count": count})
    return tally


def test_a_whole_walk_is_believed():
    tally = walk((3, [3, 2]), (3, [1]), (3, []))
    assert tally.problem == ""
    assert tally.ids == {1, 2, 3}


def test_an_empty_list_that_says_so_is_whole():
    assert walk((0, [])).problem == ""


@pytest.mark.parametrize(
    "pages",
    [
        [(3, [3, 2]), (3, [])],
        [(1, [3, 2]), (1, [])],
        [(2, [3, 2]), (3, [1])],
        [(None, [1])],
        [(True, [1])],
        [(3, [3, 2]), (3, [2])],
        [(1, [None])],
        [],
    ],
    ids=["short", "long", "moving", "no count", "count no number", "twice", "no id", "nothing"],
)
def test_a_doubtful_walk_has_a_problem(pages):
    assert walk(*pages).problem


def test_a_record_is_given_out_once():
    tally = Tally("access_cards")
    first = take(tally, {"access_cards": [{"id": 1}, {"id": 2}], "count": 3})
    second = take(tally, {"access_cards": [{"id": 2}, {"id": 3}, 4], "count": 3})
    assert first + second == (1, 2, 3)


def test_an_answer_without_the_list_is_a_failure():
    with pytest.raises(CentralFailed, match="access_cards"):
        page_of({"success": True, "access_cards": None}, "access_cards")


def test_a_small_removal_goes_at_once():
    missing = frozenset(range(20))
    assert judge_removal(many=False, missing=missing, waited=frozenset()) == Removal(due=missing)


def test_of_a_large_removal_goes_what_two_walks_missed():
    missing = frozenset(range(21))
    first = judge_removal(many=True, missing=missing, waited=frozenset())
    assert first == Removal(waiting=missing)
    second = judge_removal(many=True, missing=frozenset(range(1, 23)), waited=first.waiting)
    assert second == Removal(due=frozenset(range(1, 21)), waiting=frozenset({21, 22}))


def test_nothing_missing_ends_the_waiting():
    assert judge_removal(many=True, missing=frozenset(), waited=frozenset({1})) == Removal()


@pytest.mark.parametrize("waiting", [frozenset(), frozenset({3}), frozenset({3, 2, 1_999_999_999})])
def test_what_waits_is_remembered(waiting):
    assert read_waiting(waiting_text(waiting)) == waiting


def test_another_releases_note_is_nothing_that_waits():
    assert read_waiting("0a1b2c3d") == frozenset()
