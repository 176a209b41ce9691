"""Comparison with the record that was sent: the same, another one, or a question for a person."""

from __future__ import annotations

import pytest

from gateway.domain.record_match import RecordMatch, match_record
from gateway.domain.writes import CAMERA_EVENT_CREATE, CARD_CREATE, ENTRY_CREATE

SAME, PERHAPS, OTHER = RecordMatch.SAME, RecordMatch.PERHAPS, RecordMatch.OTHER
AT = "2026-01-31T12:00:00.000Z"
SEEN = {"camera_id": 4, "name": "Passed", "date_at": AT, "source_name": "North", "source_id": 7}
CARD = {"number": "77", "holder_name": "Nora", "pin": "1234"}
BY_HAND = {"device_id": 101, "type": "entry", "date_at": AT, "plate": "AB 12"}


@pytest.mark.parametrize(
    ("record", "newer", "told"),
    [
        ({**SEEN, "note": "x"}, None, SAME),
        ({**SEEN, "name": "somebody at central wrote this"}, None, SAME),
        ({**SEEN, "source_id": 8}, True, OTHER),
        ({**SEEN, "source_name": "South"}, True, OTHER),
        ({**SEEN, "date_at": "2026-01-31T13:00:00.000Z"}, True, SAME),  # the clock was put right after it was sent
        ({**SEEN, "date_at": "2026-01-31T13:00:00.000Z"}, None, PERHAPS),
        ({**SEEN, "date_at": "2024-01-31T13:00:00.000Z"}, False, OTHER),  # of the site before it was set up anew
        ({"camera_id": 4, "name": "Passed", "date_at": AT}, True, SAME),  # central keeps no sources
        ({"camera_id": 4, "name": "Passed", "date_at": AT}, None, PERHAPS),
        ({"camera_id": 4, "name": "Passed", "date_at": AT}, False, OTHER),
        ({"camera_id": 4, "name": "Other", "date_at": AT}, True, PERHAPS),
        ({"camera_id": 5, "name": "Passed", "date_at": AT}, True, OTHER),
        ({"state": "new"}, True, PERHAPS),  # it shows nothing by which it could be told
        ({"state": "new"}, False, OTHER),
    ],
)
def test_a_camera_event(record, newer, told):
    assert match_record(CAMERA_EVENT_CREATE.lookup, SEEN, {"id": 5000, **record}, newer=newer) is told


@pytest.mark.parametrize(
    ("record", "newer", "told"),
    [
        ({"number": "77", "holder_name": "Nora"}, None, SAME),  # no service shows a PIN again
        ({"number": "77", "holder_name": "Nora", "pin": "9999"}, None, PERHAPS),
        ({"number": "77", "holder_name": "Otto"}, None, PERHAPS),
        ({"number": "77", "holder_name": "Otto"}, False, OTHER),
        ({"number": "78", "holder_name": "Nora"}, None, OTHER),
    ],
)
def test_an_access_card(record, newer, told):
    assert match_record(CARD_CREATE.lookup, CARD, {"id": 5000, **record}, newer=newer) is told


def test_an_entry_that_a_person_made_has_no_source():
    assert match_record(ENTRY_CREATE.lookup, BY_HAND, {**BY_HAND, "source_id": None, "id": 1}, newer=None) is SAME
    assert match_record(ENTRY_CREATE.lookup, BY_HAND, {**BY_HAND, "source_id": None, "id": 1}, newer=False) is PERHAPS


@pytest.mark.parametrize(("plate", "told"), [("ab-12", PERHAPS), ("AB 13", OTHER)])
def test_an_entry_of_another_plate_is_another_one_however_alike_it_is(plate, told):
    record = {**BY_HAND, "plate": plate, "note": "x", "lane": "exit", "id": 1}
    assert match_record(ENTRY_CREATE.lookup, {**BY_HAND, "lane": "entry"}, record, newer=None) is told
