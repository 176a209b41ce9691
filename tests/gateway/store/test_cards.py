from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.credentials import Card, CardStatus
from gateway.store import CardChanges, CardRecord


def card(number, *aliases, **fields):
    return CardRecord(Card(number, str(number), aliases=tuple(sorted(aliases)), **fields), f'{{"id": {number}}}')


async def test_a_card_is_kept_as_it_was(store):
    made = card(1, "text:1", "h10301:1:1", status=CardStatus.LOST, valid_from=5, valid_until=9, holder="Ä")
    assert await store.cards.apply(put=[made], now=1) == CardChanges(added=1, changed=0, removed=0)
    assert await store.cards.get(1) == made
    assert await store.cards.records() == {1: '{"id": 1}'}
    (found,) = await store.cards.matching(["text:none", "text:1"])
    assert found == replace(made.card, aliases=())


async def test_one_card_under_two_aliases_is_found_once(store):
    await store.cards.apply(put=[card(1, "text:1", "raw:26:1")], now=1)
    assert len(await store.cards.matching(["raw:26:1", "text:1"])) == 1
    assert await store.cards.matching([]) == ()


async def test_two_cards_under_one_alias_are_both_found(store):
    await store.cards.apply(put=[card(n, "text:1") for n in range(1, 20)], now=1)
    found = await store.cards.matching(["text:1"])
    assert 2 <= len(found) <= 8


async def test_a_changed_card_answers_to_its_new_aliases_alone(store):
    await store.cards.apply(put=[card(1, "text:1")], now=1)
    assert await store.cards.apply(put=[card(1, "text:2")], now=2) == CardChanges(added=0, changed=1, removed=0)
    assert await store.cards.matching(["text:1"]) == ()
    assert len(await store.cards.matching(["text:2"])) == 1


async def test_removals_take_effect_first(store):
    await store.cards.apply(put=[card(1, "text:1"), card(2, "text:2")], now=1)
    changes = await store.cards.apply(put=[card(2, "text:3")], remove=[1, 2, 99], now=2)
    assert changes == CardChanges(added=1, changed=0, removed=2)
    assert await store.cards.count() == 1
    assert await store.cards.matching(["text:1", "text:2"]) == ()
    assert len(await store.cards.matching(["text:3"])) == 1


async def test_a_list_that_cannot_be_applied_whole_changes_nothing(store):
    await store.cards.apply(put=[card(1, "text:1")], now=1)
    with pytest.raises(OverflowError):
        await store.cards.apply(put=[card(2, "text:2"), card(2**70)], remove=[1], now=2)
    assert await store.cards.records() == {1: '{"id": 1}'}


async def test_notes_of_sweeps(store):
    assert await store.cards.remembered("last") is None
    await store.cards.remember("last", "1")
    await store.cards.remember("last", "2")
    assert await store.cards.remembered("last") == "2"
