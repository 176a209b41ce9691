"""Standing orders and corrections by people: recorded, refused in words, and shown on the page's stream."""

from __future__ import annotations

from dataclasses import asdict

from gateway.domain.commands import GateAction
from gateway.domain.credentials import Card
from gateway.domain.events import EventKind
from gateway.store import EventFilter, StoredCard


async def told(gateway, kind):
    page = await gateway.store.events.page(EventFilter(types=(int(kind),)))
    return [event.description for event in page.events]


async def test_an_order_reaches_its_lane_with_who_and_why(gateway):
    body = {"lane_id": "entry", "order": "lock_down", "reason": "  police \n asked "}
    status, answer = await gateway.call("/status/lane/order", body)
    assert (status, answer["lane"]) == (200, {"id": "entry", "order": "lock_down"})
    lane = gateway.board.lanes()[0]
    assert (lane.order, str(lane.order_text)) == ("lock_down", "the lane is locked down by chief: police asked")
    status, _ = await gateway.call("/status/lane/order", {"lane_id": "entry"})
    assert (status, gateway.board.lanes()[0].order) == (200, "")


async def test_what_is_no_order_is_refused(gateway):
    for body, why in (
        ({"lane_id": "entry", "order": "explode"}, "order"),
        ({"order": "lock_down"}, "lane_id"),
        ({"lane_id": "entry", "order": "lock_down", "reason": "x" * 201}, "reason"),
    ):
        status, answer = await gateway.call("/status/lane/order", body)
        assert (status, answer["lane"]) == (400, None)
        assert why in answer["error"]
    status, answer = await gateway.call("/status/lane/order", {"lane_id": "roof", "order": "lock_down"})
    assert (status, answer["error"]) == (404, "no lane 'roof' at this site")


async def test_a_stop_goes_to_the_gate_of_its_lane_as_a_command(gateway):
    status, answer = await gateway.call("/status/lane/stop", {"lane_id": "entry"})
    assert (status, answer["lane"], answer["command"]["action"]) == (200, {"id": "entry"}, "stop")
    assert answer["command"]["recorded"] is True
    (command,) = gateway.board.commands
    assert (command.device_id, command.action, command.source) == (101, GateAction.STOP, "user:chief")
    status, answer = await gateway.call("/status/lane/stop", {"lane_id": "roof"})
    assert (status, answer["error"]) == (404, "no lane 'roof' at this site")
    gateway.board.records = False
    _, answer = await gateway.call("/status/lane/stop", {"lane_id": "entry"})
    assert answer["command"]["recorded"] is False


async def test_a_count_is_corrected_and_recorded(gateway):
    status, _ = await gateway.call("/status/area/count", {"area_id": "garage", "count": 2})
    assert status == 200
    assert await told(gateway, EventKind.COUNT_CORRECTED) == ["Garage: chief set the count to 2 (it was 0)"]
    for body, expected in (
        ({"area_id": "roof", "count": 1}, 404),
        ({"area_id": "garage", "count": -1}, 400),
        ({"area_id": "garage", "count": "2"}, 400),
        ({"area_id": "garage"}, 400),
    ):
        assert (await gateway.call("/status/area/count", body))[0] == expected


async def test_anti_passback_is_forgiven_to_one_or_to_everybody_by_name(gateway):
    await gateway.store.cards.apply(put=[StoredCard(Card(7, "0007"), "{}")], now=1)
    assert (await gateway.call("/status/passback/forgive", {"card_id": 7}))[0] == 200
    assert (await gateway.call("/status/passback/forgive", {"everybody": True}))[0] == 200
    assert await told(gateway, EventKind.PASSBACK_FORGIVEN) == [
        "chief forgave anti-passback for every card; the next passage counts as the first",
        "chief forgave anti-passback for card 0007; the next passage counts as the first",
    ]
    assert (await gateway.call("/status/passback/forgive", {"card_id": 8}))[0] == 404
    assert (await gateway.call("/status/passback/forgive", {}))[0] == 400
    assert (await gateway.call("/status/passback/forgive", {"card_id": 7, "everybody": True}))[0] == 400


async def test_an_order_in_place_of_another_than_one_has_seen_is_refused(gateway):
    hold = {"lane_id": "entry", "order": "hold_open", "reason": "delivery", "instead_of": {}}
    assert (await gateway.call("/status/lane/order", hold))[0] == 200
    status, answer = await gateway.call("/status/lane/order", {**hold, "order": "lock_down"})
    assert status == 409
    assert "meanwhile: the lane is held open by chief: delivery. Give yours again" in answer["error"]
    assert gateway.board.lanes()[0].order == "hold_open"
    now_seen = {**hold, "order": "lock_down", "instead_of": asdict(gateway.board.lanes()[0].standing)}
    assert (await gateway.call("/status/lane/order", now_seen))[0] == 200
