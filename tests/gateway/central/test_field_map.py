"""Cards out of records of several shapes."""

from __future__ import annotations

from datetime import UTC
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from held_memory import held_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.central.client.values import record_id
from gateway.central.field_map import CardFieldMap, CardMapper, map_card
from gateway.domain.access import Reason, decide
from gateway.domain.credentials import CardStatus, Credential, h10301_bits
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.site.central_sections import CardField, CentralSection

MONTREAL = ZoneInfo("America/Toronto")


def mapped(zone=UTC, **record):
    return map_card(7, {"id": 7, **record}, CardFieldMap(), zone)


@pytest.mark.parametrize(
    ("record", "aliases"),
    [
        ({"number": "0011572"}, {"text:0011572", "digits:11572"}),
        ({"number": 11572}, {"text:11572"}),
        ({"code": " ab 1 "}, {"text:AB 1"}),
        ({"number": "00111572", "facility_code": 1, "card_number": 11572}, {"text:00111572", "h10301:1:11572"}),
        ({"facility": "12", "number": "345"}, {"text:345", "h10301:12:345"}),
        ({"facility_code": 999, "card_number": 11572}, {"text:11572"}),
        ({"number": "012,00345"}, {"text:012,00345", "h10301:12:345"}),
        ({"number": "0013961168"}, {"text:0013961168", "digits:13961168", "h10301:213:2000", "raw:32:D507D0"}),
        ({"number": "77108", "format": "H10301"}, {"text:77108", "h10301:1:11572"}),
        ({"number": "123456", "format": "37-bit H10302"}, {"text:123456", "h10302:123456"}),
        ({"facility": 300, "card_number": 5, "format": "h10304"}, {"text:5", "h10304:300:5"}),
        ({"uid": "71:86:A6:1E"}, {"text:71:86:A6:1E", "raw:32:7186A61E"}),
        ({"plate": "ab-10 cd"}, {"plate:AB10CD", "near:A810C0"}),
        ({"plate": "\uff21\uff22 \u0661\u0660"}, {"plate:AB10", "near:A810"}),
        ({"plate": "\u0410123\u0412\u0421"}, {"plate:\u0410123\u0412\u0421", "near:A1238C"}),
        ({"plate": "\ufffdA12345"}, set()),
        ({"plate": "A?12345"}, set()),
        ({"holder": "nobody"}, set()),
        ({"number": ["1"], "card_number": None}, set()),
        ({"number": "x" * 129}, set()),
    ],
)
def test_aliases(record, aliases):
    found = mapped(**record)
    assert set(found.aliases) == aliases


def test_a_26_bit_reading_meets_its_card():
    card = mapped(number="00111572", facility_code=1, card_number=11572)
    reading = Credential(bit_length=26, bits=h10301_bits(1, 11572))
    assert set(reading.aliases()) & set(card.aliases)


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ({}, CardStatus.ACTIVE),
        ({"status": "Active"}, CardStatus.ACTIVE),
        ({"status": 1}, CardStatus.ACTIVE),
        ({"status": 0}, CardStatus.SUSPENDED),
        ({"status": "blocked"}, CardStatus.BLOCKED),
        ({"state": "stolen"}, CardStatus.LOST),
        ({"status": "expired"}, CardStatus.EXPIRED),
        ({"enabled": False}, CardStatus.SUSPENDED),
        ({"enabled": True, "status": "lost"}, CardStatus.LOST),
        ({"status": "active", "is_active": 0}, CardStatus.SUSPENDED),
        ({"status": "active", "deleted_at": "2026-01-01"}, CardStatus.SUSPENDED),
        ({"status": "active", "deleted": False}, CardStatus.ACTIVE),
        ({"enabled": True, "active": False}, CardStatus.SUSPENDED),
        ({"active": "yes", "is_enabled": "off"}, CardStatus.SUSPENDED),
        ({"enabled": True, "active": "active"}, CardStatus.ACTIVE),
        ({"status": "active", "state": "blocked"}, CardStatus.BLOCKED),
        ({"status": "expired", "card_status": "lost", "enabled": False}, CardStatus.LOST),
        ({"deleted": False, "deleted_at": "2026-01-01"}, CardStatus.SUSPENDED),
    ],
)
def test_status(record, status):
    assert mapped(number="1", **record).status is status
    assert mapped(number="1", **record).unread == ""


@pytest.mark.parametrize(
    "record",
    [
        {"status": "sparkling"},
        {"status": "active", "state": "sparkling"},
        {"status": "active", "enabled": "perhaps"},
        {"enabled": {}},
        {"valid_until": "next spring"},
        {"valid_until": "2030-01-01", "expires_at": "soon"},
        {"valid_from": "31/01/2026"},
        {"end_date": -1},
    ],
)
def test_what_cannot_be_read_suspends_the_card_and_is_said(record):
    found = mapped(number="1", **record)
    assert found.status is CardStatus.SUSPENDED
    assert found.unread
    decision = decide(Credential(text="1"), (found,), now=1)
    assert decision.reason is Reason.RECORD_UNREADABLE
    assert str(decision.words()).endswith(f"({list(record)[-1]})")


NOON = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31T12:00:00.000Z", NOON),
        ("2026-01-31 07:00:00", NOON),
        ("2026-01-31T13:00:00+01:00", NOON),
        (1_769_860_800, NOON),
        (1_769_860_800_000, NOON),
        (None, None),
        ("", None),
        (0, None),
        ("0000-00-00 00:00:00", None),
        ("9999-12-31", None),
    ],
)
def test_moments_without_an_offset_are_of_the_sites_zone(value, micros):
    found = mapped(MONTREAL, number="1", valid_until=value)
    assert (found.valid_until, found.unread) == (micros, "")


def test_a_day_is_valid_from_its_start_to_its_end_at_the_site():
    card = mapped(MONTREAL, number="1", valid_from="2026-01-31", expires_at="2026-01-31")
    assert card.valid_from == NOON - 7 * 3_600_000_000
    assert card.valid_until - card.valid_from == 24 * 3_600_000_000


@pytest.mark.parametrize("written", ["20260131", 20260131, "2026-W05-6", "2026W056", " 2026-01-31 "])
def test_a_day_may_be_written_in_other_ways(written):
    plain = mapped(MONTREAL, number="1", valid_from="2026-01-31", expires_at="2026-01-31")
    card = mapped(MONTREAL, number="1", valid_from=written, expires_at=written)
    assert (card.valid_from, card.valid_until, card.unread) == (plain.valid_from, plain.valid_until, "")


@pytest.mark.parametrize(
    "written", ["1769860800", "1769860800000", "20260131070000", 20260131070000, "20260131T070000", "20260131T120000Z"]
)
def test_a_moment_may_be_written_without_a_mark_between(written):
    card = mapped(MONTREAL, number="1", valid_from=written, valid_until=written)
    assert (card.valid_from, card.valid_until, card.unread) == (NOON, NOON, "")


@pytest.mark.parametrize("written", ["1710123100000", 1710123100000])
def test_milliseconds_are_no_date_of_another_century(written):
    assert mapped(number="1", valid_from=written).valid_from == 1_710_123_100_000_000


@pytest.mark.parametrize("written", ["20261301", 20261301, "2026-13-01", "20261301000000", "2026-W60-1"])
def test_a_day_that_there_is_not_cannot_be_read(written):
    assert mapped(number="1", valid_until=written).unread == "valid_until"


def test_of_several_bounds_the_strictest_counts():
    starts = {"valid_from": "2026-01-01", "starts_at": "2026-02-01", "start_date": ""}
    card = mapped(number="1", **starts, valid_until="2027-01-01", expires_at="2026-06-01", valid_to=0)
    alone = mapped(number="1", starts_at="2026-02-01", expires_at="2026-06-01")
    assert (card.valid_from, card.valid_until) == (alone.valid_from, alone.valid_until)


TOKYO = ZoneInfo("Asia/Tokyo")
IN_PARTS = {"date": "2020-01-01 00:00:00.000000", "timezone_type": 3, "timezone": "UTC"}


@pytest.mark.parametrize("value", [IN_PARTS, ["2020-01-01"], {"date": None}])
def test_a_date_in_parts_is_no_absent_date(value):
    found = mapped(number="5", valid_until=value)
    assert (found.status, found.unread) == (CardStatus.SUSPENDED, "valid_until")
    assert mapped(number="5", deleted_at=value).status is CardStatus.SUSPENDED


@pytest.mark.parametrize("value", [None, "", {}, [], "0000-00-00 00:00:00", 0, False])
def test_what_says_nothing_neither_ends_nor_deletes_a_card(value):
    found = mapped(number="5", valid_until=value or None, deleted_at=value)
    assert (found.status, found.valid_until, found.unread) == (CardStatus.ACTIVE, None, "")


@pytest.mark.parametrize("zone", [UTC, MONTREAL, TOKYO])
def test_the_first_year_is_long_ago_and_the_last_for_ever_wherever_the_site_is(zone):
    card = mapped(zone, number="5", valid_from="0001-01-01T00:00:00", valid_until="0001-01-01T00:00:00")
    assert card.valid_from < 0
    assert card.valid_until < 0
    assert (mapped(zone, number="5", valid_until="9999-12-31").valid_until or 2**62) > 2**57


def test_an_empty_list_leaves_the_word_to_the_next_field():
    card = mapped(number="5", schedules=[], schedule_ids=[3], zones=[], zone_id="7")
    assert (card.schedules, card.zones) == (("3",), ("7",))


@pytest.mark.parametrize(
    ("listed", "read", "same"),
    [
        ("aB3dqZw", "aB3dqZw", True),
        ("aB3dqZw", "aB3dQZw", False),
        ("aB3dqZw", "AB3DQZW", False),
        ("ab-12x", "AB-12X", True),
        ("AB-12X", "ab-12x", True),
        ("AB-12X", "Ab-12x", True),
        ("7186a61E", "7186A61e", True),
    ],
)
def test_case_counts_where_a_code_has_both(listed, read, same):
    card = mapped(number=listed)
    assert bool(set(card.aliases) & set(Credential(text=read).aliases())) is same


@pytest.mark.parametrize(
    ("record", "holder"),
    [
        ({"holder_name": "Ada Roy"}, "Ada Roy"),
        ({"first_name": "Ada", "last_name": "Roy"}, "Ada Roy"),
        ({"customer": {"name": "Roy Ltd"}}, "Roy Ltd"),
        ({"customer": "Roy"}, ""),
    ],
)
def test_holder(record, holder):
    assert mapped(**record).holder == holder


@pytest.mark.parametrize(
    ("value", "found"),
    [(4, 4), ("4", 4), (True, None), (0, None), (-1, None), (None, None), ("x", None), (FIRST_PROVISIONAL_ID, None)],
)
def test_ids(value, found):
    assert record_id({"id": value}) == found


def test_the_fingerprint_follows_map_and_zone():
    plain = CardFieldMap()
    marks = {plain.fingerprint(UTC), plain.fingerprint(MONTREAL), CardFieldMap(printed=("badge",)).fingerprint(UTC)}
    assert len(marks) == 3
    assert map_card(7, {"badge": "5"}, CardFieldMap(printed=("badge",)), UTC).aliases == ("text:5",)


@pytest.mark.parametrize(
    ("record", "zones"),
    [
        ({}, ()),
        ({"zone_id": 7}, ("7",)),
        ({"zones": ["7", 8]}, ("7", "8")),
        ({"zones": [{"id": 7, "name": "North"}]}, ("7", "North")),
        ({"zones": [{"colour": "red"}]}, ("",)),
        ({"zones": []}, ()),
    ],
)
def test_zones(record, zones):
    assert mapped(**record).zones == zones
    assert mapped(**{name.replace("zone", "schedule"): value for name, value in record.items()}).schedules == zones


def test_owner_and_marks():
    card = mapped(customer_id=9000, first_person=True, duress="yes")
    assert (card.owner, card.first_person, card.duress) == ("9000", True, True)
    assert mapped().owner == ""


SHAPES = {
    "flat": {
        "id": 7, "number": "00112345", "facility_code": 1, "card_number": 12345, "status": "active",
        "valid_from": "2026-01-01T00:00:00Z", "valid_until": "2027-01-01T00:00:00Z", "customer_id": 9, "zone_id": 3,
        "schedule_id": 4, "holder_name": "Nora Roy",
    },
    "a guest's": {
        "id": "7", "code": "001,12345", "state": "Valid", "starts_at": "2026-01-01", "expires_at": 1798761600,
        "guest": {"name": "Nora Roy"}, "guest_id": 9, "zones": ["3"], "schedules": [{"id": 4}],
    },
    "linked": {
        "id": 7, "credential": "1/12345", "enabled": True, "activated_at": 1767225600,
        "expiry_date": "2027-01-01T00:00Z",
        "customer": {"id": 9, "name": "Nora Roy"}, "access_zones": [{"id": 3}], "access_schedules": "4",
        "deleted_at": None,
    },
    "strings": {
        "id": 7, "card_no": "1:12345", "card_status": "1", "start_date": "2026-01-01 00:00:00", "end_date":
        "2027-01-01 00:00:00", "user_id": "9", "zone": "3", "schedule": 4, "first_name": "Nora", "last_name": "Roy",
    },
}  # fmt: skip


@pytest.mark.parametrize("record", SHAPES.values(), ids=SHAPES)
def test_records_of_several_shapes_are_the_same_card(record):
    card = map_card(7, record, CardFieldMap(), UTC)
    assert record_id(record) == 7
    assert card.status is CardStatus.ACTIVE
    assert set(card.aliases) & set(Credential(bit_length=26, bits=h10301_bits(1, 12345)).aliases())
    assert (card.valid_from, card.unread) == (1_767_225_600_000_000, "")
    assert card.valid_until == 1_798_761_600_000_000
    assert (card.owner, card.holder) == ("9", "Nora Roy")
    assert ("3" in card.zones, "4" in card.schedules) == (True, True)


def test_a_shape_that_nobody_thought_of_is_mapped_by_the_site_file():
    fields = {"facility": ["badge.facility"], "number": ["badge.code"], "valid_until": ["validity.to"]}
    section = CentralSection(url="http://central", username="g", password="p", card_fields=fields)
    record = {"badge": {"facility": 1, "code": 12345}, "validity": {"to": "2027-01-01T00:00:00Z"}}
    card = map_card(7, record, CardFieldMap.model_validate(dict(section.card_fields)), UTC)
    assert card.aliases == ("h10301:1:12345",)
    assert card.valid_until == 1_798_761_600_000_000


def test_every_field_can_be_named_in_the_site_file():
    assert set(get_args(CardField)) == set(CardFieldMap.model_fields)


MAPPED = {name for names in dict(CardFieldMap()).values() for name in names}
NAMES = sorted(MAPPED | {"first_name", "last_name", "note"})
WORDS = ["", "active", "lost", "no", "2026-01-01", "0000-00-00", "0013961168", "12,345", "H10301", "AB-10 CD", "aB3"]
SAID = st.sampled_from([None, 0, 7, True, 1_767_225_600, [{"id": 3}], {"id": 9, "name": "N", "plate": "AB 1"}, *WORDS])


@given(records=st.lists(st.dictionaries(st.sampled_from(NAMES), SAID, max_size=8), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_what_other_records_look_like_does_not_matter(records):
    """Shapes are remembered from record to record."""
    nested = [{**record, "customer": {"id": 1, "name": "N"}, "vehicle": {"plate": "X 1"}} for record in records]
    mapper = CardMapper(CardFieldMap(), UTC)
    for record in [*records, *nested, *reversed(records)]:
        assert mapper.map(7, record) == map_card(7, record, CardFieldMap(), UTC)


def test_shapes_without_number_take_no_memory_without_end():
    mapper = CardMapper(CardFieldMap(), UTC)
    held = []
    for number in range(500):
        assert mapper.map(7, {f"field_{number}": 1, "number": "5"}).aliases == ("text:5",)
        held.append(held_bytes(mapper))
    assert max(held[250:]) < 1.2 * max(held[:250])
