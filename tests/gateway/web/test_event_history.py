"""The page's history: everything that the store holds, filtered, by cursor, and as a file."""

from __future__ import annotations

import csv
import io
import zipfile

import pytest

from gateway.domain.events import EventKind
from gateway.runtime.clock import iso_utc
from gateway.texts import keyed, text
from gateway.web.status import event_history


async def history(gateway, *, user="chief", **query):
    headers = await gateway.sign_in(user)
    async with gateway.client.get(f"{gateway.url}/status/event/list", params=query, headers=headers) as answer:
        return answer.status, await answer.json()


async def told(gateway, **query):
    status, answer = await history(gateway, **query)
    assert status == 200
    return [event["description"] for event in answer["events"]]


async def test_events_come_newest_first_with_their_footage(gateway):
    _, answer = await history(gateway)
    newest = answer["events"][0]
    assert newest["footage"][0]["id"] == gateway.camera_event_id
    assert answer["next"] is None
    _, answer = await history(gateway, user="guard")
    assert answer["events"][0]["footage"] == []


async def test_an_event_comes_with_its_key_and_arguments(gateway):
    said = text("event.decided_of", credential=text("credential.card", number="7"), holder="Zoë", why="it hung up")
    await gateway.happened(said, kind=EventKind.ACCESS_GRANTED)
    _, answer = await history(gateway)
    newest, earlier = answer["events"][:2]
    assert newest["description"] == "card 7 of Zoë: it hung up"
    assert newest["said"] == {"description": keyed(said), "name": keyed(EventKind.ACCESS_GRANTED.words)}
    assert "description" not in earlier["said"]


async def test_events_are_found_by_day_lane_kind_severity_and_text(gateway):
    day = 86_400_000_000
    now = gateway.clock.wall().micros
    await gateway.happened("Plate AB-123 was refused.", kind=EventKind.ACCESS_DENIED, date_at=now - 3 * day)
    await gateway.happened("The gate did not open.", kind=EventKind.OPENING_TIMED_OUT)
    await gateway.happened("Plate AB-124 was let in.", kind=EventKind.ACCESS_GRANTED)
    assert await told(gateway, search="ab-12") == ["Plate AB-124 was let in.", "Plate AB-123 was refused."]
    assert await told(gateway, severity="alarm") == ["The gate did not open."]
    assert await told(gateway, severity="notice", types="102,103") == ["Plate AB-123 was refused."]
    assert await told(gateway, severity="alarm", types="102") == []
    assert await told(gateway, lane="exit") == []
    recent = iso_utc(now - day)
    assert "Plate AB-123 was refused." not in await told(gateway, lane="entry", start_date=recent)
    assert await told(gateway, end_date=recent) == ["Plate AB-123 was refused."]
    assert (await history(gateway, start_date="yesterday"))[0] == 400
    assert (await history(gateway, severity="dreadful"))[0] == 400


async def test_pages_follow_each_other_without_gap_or_overlap(gateway, monkeypatch):
    monkeypatch.setattr(event_history, "PAGE", 4)
    wanted = [f"Passage {number}." for number in range(11)]
    for passage in wanted:
        await gateway.happened(passage)
    found, before = [], 0
    while before is not None:
        _, answer = await history(gateway, search="Passage", limit=3, before=before)
        found += [event["description"] for event in answer["events"]]
        before = answer["next"]
    assert found == wanted[::-1]


async def test_a_lane_that_is_rare_is_looked_for_some_pages_at_a_time(gateway, monkeypatch):
    monkeypatch.setattr(event_history, "PAGE", 2)
    monkeypatch.setattr(event_history, "MOST_SCANNED", 4)
    for number in range(9):
        await gateway.happened(f"Passage {number}.")
    _, answer = await history(gateway, lane="exit")
    assert answer["events"] == []
    assert answer["next"] is not None


async def test_one_event_has_an_address(gateway):
    number = await gateway.happened("A vehicle backed out.")
    headers = await gateway.sign_in()
    async with gateway.client.get(f"{gateway.url}/status/event/one/{number}", headers=headers) as answer:
        assert (await answer.json())["event"]["description"] == "A vehicle backed out."
    async with gateway.client.get(f"{gateway.url}/status/event/one/999999", headers=headers) as answer:
        assert answer.status == 404


@pytest.mark.parametrize("form", ["csv", "xlsx"])
async def test_events_are_exported_by_the_same_filter(gateway, form):
    await gateway.happened("=HYPERLINK(1)", kind=EventKind.ACCESS_DENIED)
    await gateway.happened("Plate AB-124 was let in.", kind=EventKind.ACCESS_GRANTED)
    headers = await gateway.sign_in()
    address = f"{gateway.url}/status/event/{form}?types=102,103"
    async with gateway.client.get(address, headers=headers) as answer:
        body = await answer.read()
        assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"))))
        assert [row["Description"] for row in rows] == ["Plate AB-124 was let in.", "'=HYPERLINK(1)"]
        assert rows[0]["Lane"] == "Main entry"
    else:
        with zipfile.ZipFile(io.BytesIO(body)) as sheet:
            assert b"AB-124" in sheet.read("xl/worksheets/sheet1.xml")


async def read(gateway, text, **data):
    await gateway.happened(text, kind=EventKind.ACCESS_DENIED, data=data)


async def test_events_are_found_by_plate_card_or_person_even_where_they_name_another_number(gateway):
    await read(gateway, "card 001,11572: the card has expired", credential="001,11572", card_id=4001)
    await read(gateway, "plate DM001: the card has expired", credential="DM001", card_id=4001)
    await read(gateway, "plate DM0019: no card has this plate", credential="DM0019", card_id=None)
    await gateway.happened("open by Ada", kind=EventKind.COMMAND_DONE)
    mine = ["plate DM001: the card has expired", "card 001,11572: the card has expired"]
    assert await told(gateway, search="00111572", of="card") == mine
    assert await told(gateway, search="ada", of="person") == ["open by Ada", *mine]
    assert await told(gateway, search="dm-001", of="plate") == ["plate DM0019: no card has this plate", *mine]
    assert await told(gateway, search="11572", of="") == mine[1:]
    status, answer = await history(gateway, user="guard", search="ada", of="person")
    assert (status, [event["description"] for event in answer["events"]]) == (200, ["open by Ada"])
    assert (await history(gateway, search="ada", of="cat"))[0] == 400
