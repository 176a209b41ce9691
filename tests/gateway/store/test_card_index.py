"""The index in memory against a plain dict, and its answer to hashes that collide."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.credentials import Card, CardStatus
from gateway.store.cards import index
from gateway.store.cards.index import CardIndex

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


def check(index, listed):
    assert len(index) == len(listed)
    for number in range(12):
        alias = f"text:{number}"
        expected = {card.card_id: replace(card, aliases=()) for card in listed.values() if alias in card.aliases}
        found = index.find([alias])
        if len(expected) <= 8:
            assert {card.card_id: card for card in found} == expected
    assert index.find([f"text:{number}" for number in range(12)])[8:] == ()


def play(script):
    index, listed = CardIndex(), {}
    for step in script:
        if isinstance(step, Card):
            index.put([step])
            listed[step.card_id] = step
        else:
            index.remove([step])
            listed.pop(step, None)
    check(index, listed)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_the_index_says_what_a_dict_says(script):
    play(script)


@settings(max_examples=50, deadline=None)
@given(steps)
def test_aliases_with_one_hash_are_told_apart(script):
    whole = index.alias_hash
    index.alias_hash = lambda alias: len(alias) & 1
    try:
        play(script)
    finally:
        index.alias_hash = whole


def test_rooms_of_removed_cards_are_used_again():
    index = CardIndex()
    for _ in range(30):
        index.put(Card(number, str(number), aliases=(f"text:{number}",)) for number in range(1, 400))
        index.remove(range(1, 400))
    small = index.size
    index.put(Card(number, str(number), aliases=(f"text:{number}",)) for number in range(1, 400))
    assert len(index) == 399
    assert index.size < small + 399 * 200
