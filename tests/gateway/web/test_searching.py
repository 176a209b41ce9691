"""Searches over HTTP: every list of the site's own finds text in any case and plates in any spelling."""

import pytest

WRITTEN = "Möbel Straße ΟΔΟΣ Въезд İzmir AB-12 cd 50%_\\"
FOUND = (
    "MÖBEL", "mo\u0308bel", "STRASSE", "straße", "οδος", "ΟΔΟΣ", "въезд", "ВЪЕЗД", "izmir", "İZMİR",
    "ab12CD", "AB 12 CD", "12-CD", "50%_\\",
)  # fmt: skip
MISSED = ("mobel", "M_bel", "M%bel", "50_%", "\\\\", "12-CE")
PLATES = ("ab12CD", "AB 12 CD", "12-CD", "b·12")


async def in_events(gateway):
    return "/v1/event/list", await gateway.happened(f"{WRITTEN} passed.")


async def in_devices(gateway):
    await gateway.store.devices.pulled({900: {"name": WRITTEN, "a": 1}}, removed=(), now=1)
    return "/v1/device/list", 900


async def in_cards(gateway):
    _, answer = await gateway.call("/v1/access", {"number": "8801", "holder_name": WRITTEN}, method="PUT")
    return "/v1/access/list", answer["access_card"]["id"]


async def in_usernames(gateway):
    _, answer = await gateway.call("/v1/access", {"number": "8801", "username": WRITTEN}, method="PUT")
    return "/v1/access/list", answer["access_card"]["id"]


async def in_camera_events(gateway):
    body = {"camera_id": 201, "description": WRITTEN, "date_at": "2026-01-31T12:00:00Z"}
    _, answer = await gateway.call("/v1/camera/event", body, method="PUT")
    return "/v1/camera/event/list", answer["event"]["id"]


async def found_by(gateway, path, search):
    status, answer = await gateway.call(path, {"search": search})
    assert status == 200, answer
    (records,) = (value for value in answer.values() if isinstance(value, list))
    assert answer["count"] == len(records)
    return [record["id"] for record in records]


@pytest.mark.parametrize("written", [in_events, in_devices, in_cards, in_camera_events])
async def test_a_search_finds_what_was_written(gateway, written):
    path, record_id = await written(gateway)
    assert [search for search in FOUND if record_id not in await found_by(gateway, path, search)] == []
    assert [search for search in MISSED if record_id in await found_by(gateway, path, search)] == []


async def test_a_username_is_found_in_any_case(gateway):
    path, record_id = await in_usernames(gateway)
    words = [search for search in FOUND if search not in PLATES]
    assert [search for search in words if record_id not in await found_by(gateway, path, search)] == []
    _, answer = await gateway.call("/v1/access/username", {"username": WRITTEN.upper()})
    assert answer["access_card"]["id"] == record_id


@pytest.mark.parametrize("plate", ["AB-12 cd", "ÖB-12 çd", "ЖБ-12 сд"])
async def test_plates_of_cards_and_entries_are_found_in_any_spelling(gateway, plate):
    _, card = await gateway.call("/v1/access", {"number": "8801", "plate": plate}, method="PUT")
    body = {"device_id": 101, "plate": plate, "date_at": "2026-01-13T12:00:00Z"}
    status, entry = await gateway.call("/v1/entry", body, method="PUT")
    assert status == 200, entry
    plain = plate.replace("-", "").replace(" ", "")
    for search in (plate, plain.lower(), plain.upper(), f"{plain[:2]} 12 {plain[4:]}", f"12-{plain[4:].upper()}"):
        assert await found_by(gateway, "/v1/access/list", search) == [card["access_card"]["id"]], search
        assert await found_by(gateway, "/v1/entry/list", search) == [entry["entry"]["id"]], search
    for spelled in (plain.lower(), plain.upper(), f"{plain[:2]} 12 {plain[4:]}"):
        _, answer = await gateway.call("/v1/entry/list", {"plates": [spelled]})
        assert answer["count"] == 1, spelled
    for other in ("%", "_", "12%", "12-xx", "\\"):
        assert await found_by(gateway, "/v1/entry/list", other) == [], other


async def test_a_search_in_any_case_has_pages_and_cursors(gateway):
    ids = [await gateway.happened(f"Süd {number}.") for number in range(7)]
    await gateway.happened("Nord.")
    _, second = await gateway.call("/v1/event/list", {"search": "SÜD", "page": 2, "page_limit": 3})
    assert ([event["id"] for event in second["events"]], second["count"]) == (ids[::-1][3:6], 7)
    _, last = await gateway.call(
        "/v1/event/list", {"search": "SÜD", "cursor_id": second["next_cursor"], "page_limit": 3}
    )
    assert [event["id"] for event in last["events"]] == ids[:1]
