"""One lane at the page: inputs with their age, the last passages and reading, and a card's trial."""

from __future__ import annotations

import json

from gateway.domain.credentials import Credential, h10301_bits
from gateway.domain.events import EventKind
from gateway.store import EventFilter

READING = Credential(26, h10301_bits(255, 65000))
UNKNOWN = {"credential": READING.shown(), "read_as": READING.read_as(), "reason": "unknown_credential"}


async def test_points_are_in_the_snapshot_of_their_lane_and_their_ages_are_asked_for(gateway):
    _, answer = await gateway.call("/status/now", method="GET")
    (lane,) = answer["snapshot"]["lanes"]
    gate, arming, _closing = lane["points"]
    assert (gate["role"], gate["device_id"], gate["state"]) == ("gate", 101, lane["position"])
    assert (arming["role"], arming["name"], arming["state"]) == ("arming", "arming", lane["vehicle"])
    status, answer = await gateway.call("/status/lane/points/entry", method="GET")
    assert (status, answer["ages"]) == (200, [0.4, 0.2, None])
    status, answer = await gateway.call("/status/lane/points/roof", method="GET")
    assert (status, answer["error"]) == (404, "no lane 'roof' at this site")


async def test_the_last_passages_come_newest_first_with_the_last_reading(gateway):
    await gateway.passed("A van passed.")
    await gateway.happened("card 255,65000: no card", kind=EventKind.ACCESS_DENIED, device_id=101, data=UNKNOWN)
    await gateway.happened("A van passed elsewhere.", device_id=999)
    status, answer = await gateway.call("/status/lane/past/entry", method="GET")
    assert status == 200
    assert [event["description"] for event in answer["passages"]] == ["A van passed.", "A vehicle passed."]
    assert all(event["footage"] for event in answer["passages"])
    assert answer["read"]["read"] == {
        "credential": "255,65000", "form": "", "reason": "unknown_credential",
        "why": "no card has this number or plate", "card_id": None, "enrol": {"number": "255,65000"},
    }  # fmt: skip
    _, answer = await gateway.call("/status/lane/past/entry", method="GET", user="guard")
    assert not any(event["footage"] for event in answer["passages"])
    assert (await gateway.call("/status/lane/past/roof", method="GET"))[0] == 404


async def test_a_plate_that_nobody_knows_is_offered_as_a_plate_whatever_its_event_says(gateway):
    data = {"credential": "AB123CD", "form": "plate", "reason": "unknown_credential"}
    await gateway.happened("nobody knows it", kind=EventKind.ACCESS_DENIED, device_id=101, data=data)
    _, answer = await gateway.call("/status/lane/past/entry", method="GET")
    assert (answer["read"]["read"]["form"], answer["read"]["read"]["enrol"]) == ("plate", {"plate": "AB123CD"})


async def test_a_lane_where_nothing_was_read_has_no_last_reading(gateway):
    _, answer = await gateway.call("/status/lane/past/entry", method="GET")
    assert answer["read"] is None


async def test_a_card_is_tried_by_number_or_plate_and_opens_nothing(gateway):
    for typed in ("00111572", "dm 001"):
        status, answer = await gateway.call("/status/lane/try", {"lane_id": "entry", "card": typed})
        assert status == 200
        assert answer["trial"]["opens"] is True
        assert answer["trial"]["holder"] == "Ada"
        assert answer["trial"]["trace"][0] == {"rule": "known", "passed": True, "seen": "card 4001"}
    status, answer = await gateway.call("/status/lane/try", {"lane_id": "entry", "card": "0815"})
    assert answer["trial"]["opens"] is False
    assert answer["trial"]["text"] == "no card has this number or plate"
    assert gateway.board.commands == []
    page = await gateway.store.events.page(EventFilter(types=(EventKind.CARD_TESTED,)))
    assert page.events[0].description == "test by chief: card 0815 would be refused: no card has this number or plate"
    assert all(json.loads(event.data)["test"] is True for event in page.events)


async def test_what_is_no_card_to_try_is_refused(gateway):
    for body in ({"lane_id": "entry"}, {"lane_id": "entry", "card": " "}, {"lane_id": "entry", "card": "x" * 121}):
        assert (await gateway.call("/status/lane/try", body))[0] == 400
    assert (await gateway.call("/status/lane/try", {"lane_id": "roof", "card": "1"}))[0] == 404


async def test_who_may_not_control_devices_tries_no_card_and_the_page_is_told_so(gateway):
    """The answer would name the holder of a card that somebody has found."""
    _, shown = await gateway.call("/status/now", method="GET", user="guard")
    assert (shown["snapshot"]["user"]["control_devices"], shown["snapshot"]["user"]["view_events"]) == (False, True)
    status, answer = await gateway.call("/status/lane/try", {"lane_id": "entry", "card": "00111572"}, user="guard")
    assert (status, "trial" in answer and answer["trial"]) == (500, None)
    assert answer["error"] == "permission denied: this needs can_control_devices"
    assert not (await gateway.store.events.page(EventFilter(types=(EventKind.CARD_TESTED,)))).events
