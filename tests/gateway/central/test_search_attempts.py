"""Searches for a record that may be at central: which of them prove that it is not."""

from __future__ import annotations

from gateway.central.push.search_attempts import Absent, NotYet, SearchAttempts


def test_two_clean_searches_far_enough_apart_prove_a_record_absent():
    now = [100.0]
    attempts = SearchAttempts(monotonic=lambda: now[0], may_take=60)
    assert isinstance(attempts.missed(7, at=100), NotYet)
    assert isinstance(attempts.missed(7, at=150), NotYet), "central may still carry the request out"
    assert isinstance(attempts.missed(7, at=160), Absent)


def test_a_search_from_before_a_row_was_sent_again_tells_nothing_of_it():
    now = [200.0]
    attempts = SearchAttempts(monotonic=lambda: now[0], may_take=60)
    attempts.missed(7, at=100)
    assert attempts.counts(7, at=150)
    attempts.missed(7, at=190)  # absent: the row goes again at 200
    assert not attempts.counts(7, at=190), "a shared search may have begun before"
    assert attempts.counts(7, at=201)
    assert attempts.counts(8, at=190)
