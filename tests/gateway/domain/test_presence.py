from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.presence import CountCorrection, Forgiveness, Movement, Presence, Way, Whereabouts

IN = Way(enters="garage")
DEEPER = Way(leaves="garage", enters="vip")


def test_a_passage_moves_the_holder_and_counts():
    presence = Presence()
    presence.move(Movement(IN, 1, "card:1"))
    presence.move(Movement(IN, 2))
    presence.move(Movement(DEEPER, 3, "card:1", opens=True))
    assert dict(presence.counts) == {"garage": 1, "vip": 1}
    assert presence.whereabouts("card:1") == Whereabouts("vip", 3)
    assert (presence.opened_at("vip"), presence.opened_at("garage")) == (3, None)
    presence.move(Movement(DEEPER.back, 4, "card:1"))
    presence.move(Movement(IN.back, 5, "card:1"))
    assert dict(presence.counts) == {"garage": 1, "vip": 0}
    assert presence.whereabouts("card:1") == Whereabouts("", 5)


def test_a_way_that_leads_nowhere_else_changes_nothing():
    presence = Presence()
    presence.move(Movement(Way(), 1, "card:1"))
    assert (dict(presence.counts), presence.whereabouts("card:1")) == ({}, None)


def test_corrections():
    presence = Presence(counts={"garage": 3}, holders=[("card:1", Whereabouts("garage", 1))])
    presence.correct(CountCorrection("garage", 7))
    presence.correct(Forgiveness("card:2"))
    assert presence.count("garage") == 7
    assert presence.whereabouts("card:1")
    presence.correct(Forgiveness())
    assert presence.whereabouts("card:1") is None
    with pytest.raises(ValueError, match="0 or more"):
        CountCorrection("garage", -1)


@given(st.lists(st.sampled_from([IN, IN.back, DEEPER, DEEPER.back])))
def test_no_count_falls_below_nothing(ways):
    presence = Presence()
    for at, way in enumerate(ways):
        presence.move(Movement(way, at))
        assert all(count >= 0 for count in presence.counts.values())


def test_a_holder_who_gets_another_name_stays_where_they_are():
    presence = Presence(holders=(("card:1", Whereabouts("garage", 5)),))
    presence.rename("card:1", "card:2")
    presence.rename("card:9", "card:3")
    assert presence.whereabouts("card:2") == Whereabouts("garage", 5)
    assert presence.whereabouts("card:1") is None
    assert presence.whereabouts("card:3") is None
