from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from waiting import until

from gateway.domain.credentials import Card, CardStatus, near_alias, plate_alias
from gateway.domain.errors import StoreError
from gateway.domain.plates import NearPlate, skeleton
from gateway.store import CardChanges, StoredCard
from gateway.store.cards.index import CardIndex
from gateway.store.cards.rows import ready
from gateway.store.engine.database import Database


def card(number, *aliases, **fields):
    return StoredCard(Card(number, str(number), aliases=tuple(sorted(aliases)), **fields), f'{{"id": {number}}}')


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


async def test_a_list_that_comes_from_its_newest_card_down_takes_no_more_of_the_disk(store):
    def size():
        with closing(sqlite3.connect(store.database.path.with_name("cards.db"))) as connection:
            return connection.execute("PRAGMA page_count").fetchone()[0]

    def listed(first, last):
        return [ready(replace(card(n, f"text:{n}"), record="x" * 400)) for n in range(last - 1, first - 1, -1)]

    for first in range(4500, 2500, -500):
        await store.cards.apply(put=listed(first, first + 500), now=1)
    falling = size()
    for first in range(6000, 8000, 500):
        await store.cards.apply(put=listed(first, first + 500)[::-1], now=1)
    assert falling < 1.25 * (size() - falling)


async def test_a_list_that_cannot_be_applied_whole_changes_nothing(store):
    await store.cards.apply(put=[card(1, "text:1")], now=1)
    with pytest.raises(OverflowError):
        await store.cards.apply(put=[card(2, "text:2"), card(2**70)], remove=[1], now=2)
    assert await store.cards.records() == {1: '{"id": 1}'}


async def test_notes_of_sweeps(store):
    assert await store.notes.remembered("last") is None
    await store.notes.remember("last", "1")
    await store.notes.remember("last", "2")
    assert await store.notes.remembered("last") == "2"


async def indexed(store):
    await until(lambda: store.cards.is_indexed)


FACTS = {"zones": ("7", "staff"), "schedules": ("day",), "owner": "9000", "first_person": True, "duress": True}


async def test_what_rules_ask_of_a_card_is_kept(store):
    made = card(1, "text:1", **FACTS)
    await store.cards.apply(put=[made], now=1)
    assert await store.cards.get(1) == made
    assert await store.cards.matching(["text:1"]) == (replace(made.card, aliases=()),)


async def test_the_index_follows_every_change(store):
    await indexed(store)
    made = card(1, "text:1", "raw:26:1", **FACTS)
    await store.cards.apply(put=[made, card(2, "text:2")], now=1)
    assert store.cards.at_once(["raw:26:1", "text:1"]) == (replace(made.card, aliases=()),)
    await store.cards.apply(put=[card(1, "text:3")], remove=[2], now=2)
    assert store.cards.at_once(["text:1", "raw:26:1", "text:2"]) == ()
    assert store.cards.at_once(["text:3"]) == await store.cards.matching(["text:3"])


async def test_the_index_is_there_again_after_a_start(opened, tmp_path):
    async with opened(tmp_path) as store:
        assert store.cards.at_once(["text:1"]) is None, "not before it is built"
        assert store.cards.near_at_once("AOB1") is None
        await store.cards.apply(put=[card(n, f"text:{n}") for n in range(1, 400)], now=1)
        await store.cards.listed(5)
    async with opened(tmp_path) as store:
        await indexed(store)
        assert store.cards.at_once(["text:399"]) == await store.cards.matching(["text:399"])
        assert store.cards.listed_at == 5


async def test_many_changes_at_once_are_read_anew_and_few_beside_them_are_not_lost(store):
    await indexed(store)
    many = store.cards.apply(put=[card(n, f"text:{n}") for n in range(1, 1000)], now=1)
    few = [store.cards.apply(put=[card(n, f"text:new-{n}")], now=2) for n in (1, 500, 999)]
    await asyncio.gather(many, *few)
    assert store.cards.at_once(["text:2"]) is None
    await store.cards.apply(remove=[2], now=3)
    await indexed(store)
    for alias in ("text:2", "text:3", "text:500", "text:new-1", "text:new-500", "text:new-999"):
        assert store.cards.at_once([alias]) == await store.cards.matching([alias]), alias


async def test_more_cards_than_a_statement_holds_and_some_of_them_twice(store):
    await store.cards.apply(put=[card(n, f"text:old-{n}") for n in range(1, 700)], now=1)
    put = [card(n, f"text:{n}", f"raw:26:{n}") for n in range(1, 1200)] + [card(n, f"text:new-{n}") for n in (5, 900)]
    assert await store.cards.apply(put=put, now=2) == CardChanges(added=500, changed=699, removed=0)
    assert await store.cards.count() == 1199
    assert await store.cards.matching(["text:old-1", "text:old-699", "text:5", "raw:26:900"]) == ()
    for alias in ("text:1", "raw:26:699", "text:1199", "text:new-5", "text:new-900"):
        assert len(await store.cards.matching([alias])) == 1, alias


async def test_a_page_of_cards_is_followed_without_reading_it_anew(store, monkeypatch):
    """In its order with what comes right after it: while some of it is not followed, the file is asked."""
    await indexed(store)
    page = [ready(card(n, f"text:{n}")) for n in range(1, 800)]
    await asyncio.gather(
        store.cards.apply(put=page, now=1),
        store.cards.apply(remove=[2, 799], now=2),
        store.cards.apply(put=[card(3, "text:new-3")], now=3),
    )
    assert store.cards.at_once(["text:2", "text:799", "text:3"]) in (None, ())
    reads, real = [], Database.read
    monkeypatch.setattr(Database, "read", lambda *args, **more: reads.append(args) or real(*args, **more))
    await indexed(store)
    assert reads == []
    monkeypatch.undo()
    for alias in ("text:1", "text:2", "text:3", "text:new-3", "text:400", "text:798", "text:799"):
        assert store.cards.at_once([alias]) == await store.cards.matching([alias]), alias


async def test_pages_that_come_one_after_another_are_copied_once_at_their_end(store, monkeypatch):
    await indexed(store)
    copies, real = [], Database.in_memory
    monkeypatch.setattr(Database, "in_memory", lambda *args: copies.append(args) or real(*args))
    pages = [[card(n, f"text:{n}") for n in range(first, first + 500)] for first in range(1, 2001, 500)]
    await asyncio.gather(*(store.cards.apply(put=page, now=1) for page in pages))
    assert store.cards.at_once(["text:2000"]) is None, "the file answers meanwhile"
    await store.cards.apply(remove=[1999], now=2)
    await indexed(store)
    assert len(copies) == 1
    for alias in ("text:1", "text:500", "text:501", "text:1999", "text:2000"):
        assert store.cards.at_once([alias]) == await store.cards.matching([alias]), alias


async def test_an_index_that_could_not_follow_is_not_asked_and_built_anew(store, monkeypatch):
    """A card that was taken away must not go on opening because the index stopped before its end."""
    await store.cards.apply(put=[card(n, f"text:{n}") for n in range(1, 400)], now=1)
    await indexed(store)
    whole = CardIndex.remove

    def breaking(index, card_ids):
        if 399 in card_ids:
            raise MemoryError
        whole(index, card_ids)

    monkeypatch.setattr(CardIndex, "remove", breaking)
    await store.cards.apply(remove=range(200, 400), now=2)
    while not store.cards.is_indexed:
        assert store.cards.at_once(["text:399"]) is None
        await asyncio.sleep(0)
    for alias in ("text:199", "text:200", "text:399"):
        assert store.cards.at_once([alias]) == await store.cards.matching([alias]), alias


async def test_aliases_that_outlived_their_card_in_a_damaged_file_open_nothing_when_it_comes_back(opened, tmp_path):
    async with opened(tmp_path) as store:
        await store.cards.apply(put=[card(1, "text:old")], now=1)
    with closing(sqlite3.connect(tmp_path / "cards.db")) as connection, connection:
        connection.execute("DELETE FROM card")  # foreign keys are off here
    async with opened(tmp_path) as store:
        await store.cards.apply(put=[card(1, "text:new")], now=2)
        assert await store.cards.matching(["text:old"]) == ()
        assert len(await store.cards.matching(["text:new"])) == 1


async def test_plates_that_cameras_may_confuse(store):
    await indexed(store)
    listed = [card(n, plate_alias(plate), near_alias(skeleton(plate))) for n, plate in enumerate(["AOB1", "XY2"], 1)]
    await store.cards.apply(put=listed, now=1)
    assert store.cards.near_at_once("A0BI") == (NearPlate("AOB1", replace(listed[0].card, aliases=())),)
    assert store.cards.near_at_once("ZZZ") == ()
    for plate in ("A0BI", "ZZZ"):
        assert await store.cards.near(plate) == store.cards.near_at_once(plate)


async def test_a_row_that_cannot_be_understood_is_no_card_and_costs_no_other(opened, tmp_path):
    async with opened(tmp_path) as store:
        await store.cards.apply(put=[card(n, f"text:{n}") for n in range(1, 4)], now=1)
    with closing(sqlite3.connect(tmp_path / "cards.db")) as connection, connection:
        connection.execute("UPDATE card SET status = 'sparkling' WHERE id = 2")
    async with opened(tmp_path) as store:
        with pytest.raises(StoreError, match="cannot be understood"):
            await store.cards.matching(["text:2"])
        await indexed(store)
        assert store.cards.at_once(["text:2"]) == ()
        assert len(store.cards.at_once(["text:1", "text:3"])) == 2
