"""Faults by chance: each kind does what it says, and the same seed gives the same faults."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from pydantic import ValidationError
from waiting import until

from simulation.far_ends.central import Chances, Faults
from simulation.far_ends.central.fate import Before, Bend, fate_of

LIST = ("POST", "/v1/access/list", {"page_limit": 20})
NEW_EVENT = {"camera_id": 201, "name": "Vehicle passed", "date_at": "2026-03-01T08:00:00Z", "source_name": "site"}


def event(source_id: int) -> dict:
    return {**NEW_EVENT, "source_id": source_id}


def bend(**chances: float) -> Faults:
    return Faults(chances=Chances(**chances), seed=5)


async def listed(ask, page=1):
    _, answer = await ask("POST", "/v1/access/list", {"page": page, "page_limit": 20})
    return [card["id"] for card in answer["access_cards"]], answer["count"]


def test_chances_of_a_group_are_not_more_than_one():
    with pytest.raises(ValidationError, match="more than 1"):
        Chances(lost_requests=0.6, crashes=0.5)
    Chances(lost_requests=0.6, lost_answers=0.6)


def test_the_same_seed_gives_the_same_fates_and_about_as_many_as_asked_for():
    chances = Chances(lost_requests=0.2, failures=0.1, truncated_pages=0.3)
    dice, again = random.Random(9), random.Random(9)
    fates = [fate_of(chances, dice) for _ in range(4000)]
    assert fates == [fate_of(chances, again) for _ in range(4000)]
    befell = Counter(fate.before for fate in fates)
    assert 700 < befell[Before.LOST] < 900
    assert 320 < befell[Before.FAILED] < 480
    assert 1080 < sum(fate.bend is Bend.TRUNCATED for fate in fates) < 1320


async def test_a_lost_request_was_not_carried_out_and_a_lost_answer_was(ask, central):
    central.faults = bend(lost_requests=1)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask("POST", "/v1/camera/list", {})
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask("PATCH", "/v1/access", {"id": 4001, "note": "x"})
    assert central.cards[4001]["note"] == ""
    central.faults = bend(lost_answers=1)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask("PATCH", "/v1/access", {"id": 4001, "note": "x"})
    assert central.cards[4001]["note"] == "x"
    assert central.happened["answer lost"] == 1


async def test_a_refused_request_says_so_and_was_not_carried_out(ask, central):
    central.faults = bend(refusals=1)
    status, answer = await ask("PATCH", "/v1/access", {"id": 4001, "note": "x"})
    assert (status, answer["success"], central.cards[4001]["note"]) == (400, False, "")


async def test_a_torn_answer_ends_in_the_middle(ask, central):
    central.faults = bend(torn_answers=1)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask(*LIST)


@pytest.mark.parametrize("kind", ["half_open", "silent_answers"])
async def test_a_connection_stays_open_without_a_word(ask, central, kind):
    central.faults = Faults(chances=Chances(**{kind: 1}), half_open_seconds=3600)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask("PATCH", "/v1/access", {"id": 4001, "note": "x"}))
        await until(lambda: central.happened)
        assert not asking.done()
        asking.cancel()
    assert central.cards[4001]["note"] == ("x" if kind == "silent_answers" else "")
    central.faults = Faults()
    assert (await ask(*LIST))[0] == 200


async def test_the_kinds_of_500_differ(ask, central):
    central.faults = bend(unauthenticated=1)
    assert await ask(*LIST) == (500, {"success": False, "data": None, "error": "authentication required"})
    central.faults = bend(failures=1)
    status, answer = await ask(*LIST)
    assert (status, answer["error"]) == (500, "database is unavailable")
    central.faults = Faults()
    assert (await ask(*LIST))[0] == 200, "the session was good all the time"
    central.faults = bend(expired_sessions=1)
    assert (await ask(*LIST))[1]["error"] == "authentication required"
    central.faults = Faults()
    assert (await ask(*LIST))[1]["error"] == "authentication required", "that session is over"


async def test_signing_in_is_never_refused_for_want_of_a_session(http, central):
    central.faults = bend(unauthenticated=1)
    body = {"username": "gateway", "password": "right horse"}
    async with http.post(central.url + "/v1/auth/login", json=body) as answer:
        assert answer.status == 200


async def test_pages_are_bent_as_asked(ask, central):
    whole, count = await listed(ask)
    second, _ = await listed(ask, 2)
    central.faults = bend(truncated_pages=1)
    cut, said = await listed(ask)
    assert (cut, said) == (whole[: len(cut)], count)
    assert len(cut) < len(whole)
    central.faults = bend(duplicated_records=1)
    doubled, said = await listed(ask)
    assert (sorted(set(doubled)), len(doubled), said) == (sorted(whole), len(whole) + 1, count)
    central.faults = bend(missing_records=1)
    short, said = await listed(ask)
    assert (set(short) < set(whole), len(short), said) == (True, len(whole) - 1, count)
    central.faults = bend(wrong_counts=1)
    same, said = await listed(ask)
    assert same == whole
    assert said != count
    central.faults = bend(shifted_pages=1)
    assert (await listed(ask))[0] == whole, "the first page has nothing before it"
    shifted, _ = await listed(ask, 2)
    assert shifted != second
    assert set(shifted) & set(second)


async def test_the_clock_is_off_in_the_date_header(http, central):
    dates = []
    for skew in (0, 7200):
        central.faults = Faults(clock_skew_seconds=skew)
        async with http.get(central.url + "/") as answer:
            dates.append(parsedate_to_datetime(answer.headers["Date"]))
    assert 7199 <= (dates[1] - dates[0]).total_seconds() <= 7260


async def test_the_books_show_what_is_held_twice(ask, central):
    for number in (1, 2, 2):
        assert (await ask("PUT", "/v1/camera/event", event(number)))[0] == 200
    books = central.record_counts()
    assert {source: len(ids) for source, ids in books.camera_events.items()} == {("site", 1): 1, ("site", 2): 2}
    (double,) = books.doubles()
    assert "('site', 2) is held 2 times" in double
    _, shown = await ask("GET", "/demo/record-counts")
    assert (shown["camera_events"], shown["doubles"]) == (2, [double])


async def test_keys_count_for_a_central_that_honours_them_and_for_no_other(ask, central, http):
    _, signed_in = await ask("POST", "/v1/auth/login", {"username": "gateway", "password": "right horse"})
    headers = {"SessionID": signed_in["session"], "Idempotency-Key": "k1"}
    for _ in range(2):
        await ask("PUT", "/v1/camera/event", event(1), headers=headers)
    assert len(central.camera_events) == 2
    central.keys.honoured = True
    answers = [await ask("PUT", "/v1/camera/event", event(2), headers=headers) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(central.camera_events) == 3
    assert (await ask("PUT", "/v1/camera/event", event(3), headers=headers))[0] == 409


async def test_what_this_interface_never_has_is_refused(ask):
    assert (await ask("POST", "/v1/device/list?page=2", {}))[0] == 400
    assert (await ask("POST", "/v1/device/list", raw=b"{}"))[0] == 400
    assert (await ask("POST", "/v1/camera/event/list", {"search": "x"}))[0] == 400, "that list has no search"
