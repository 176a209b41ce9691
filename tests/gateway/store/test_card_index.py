"""The index in memory against a plain dict."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.credentials import Card, CardStatus
from gateway.store import StoredCard
from gateway.store.cards.index import CardIndex
from gateway.store.cards.rows import ready

aliases = st.sampled_from([f"text:{number}" for number in range(12)])
cards = st.builds(
    Card,
    card_id=st.integers(1, 8) | st.sampled_from([2**62]),
    number=st.text(max_size=3),
    status=st.sampled_from(list(CardStatus)),
    valid_from=st.none() | st.integers(0, 2**60),
    holder=st.text(max_size=3),
    zones=st.sampled_from([(), ("7",)]),
    duress=st.booleans(),
    aliases=st.lists(aliases, max_size=4).map(tuple),
)
steps = st.lists(cards | st.integers(1, 9), max_size=60)


def empty():
    return CardIndex(sqlite3.connect(":memory:", isolation_level=None))


def written(cards):
    return [ready(StoredCard(card, "{}")) for card in cards]


def check(index, listed):
    assert len(index) == len(listed)
    for number in range(12):
        alias = f"text:{number}"
        expected = {card.card_id: replace(card, aliases=()) for card in listed.values() if alias in card.aliases}
        found = index.find([alias])
        if len(expected) <= 8:
            assert {card.card_id: card for card in found} == expected
    assert index.find([f"text:{number}" for number in range(12)])[8:] == ()
    for number, card in listed.items():
        assert set(index.aliases_of(number)) == set(card.aliases)


@settings(max_examples=examples(80, of=200), deadline=None)
@given(steps)
def test_the_index_says_what_a_dict_says(script):
    index, listed = empty(), {}
    for step in script:
        if isinstance(step, Card):
            index.put(written([step]))
            listed[step.card_id] = step
        else:
            index.remove([step])
            listed.pop(step, None)
    check(index, listed)


def test_the_room_of_removed_cards_is_used_again():
    index = empty()
    cards = written(Card(number, str(number), aliases=(f"text:{number}",)) for number in range(1, 400))
    index.put(cards)
    small = index.size
    for _ in range(30):
        index.remove(range(1, 400))
        index.put(cards)
    assert len(index) == 399
    assert index.size < small * 1.2
