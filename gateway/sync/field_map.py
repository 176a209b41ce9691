"""How central's access-card records become cards. Pure.

The interface leaves a card's fields open, so each of our fields has several names under which it may come, the likelier
first. What is not understood never opens a gate: a status or a date that cannot be read suspends the card. Where
several fields say whether and how long a card counts, the strictest does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from pydantic import BaseModel, ConfigDict, JsonValue

from gateway.domain.credentials import (
    MAX_TEXT,
    Card,
    CardStatus,
    h10301_alias,
    listed_text_alias,
    near_alias,
    plate_alias,
)
from gateway.domain.plates import plain_plate, skeleton
from gateway.domain.printed import layout_named, number_aliases, uid_alias
from gateway.domain.wiegand import H10301
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.sync.answers import JsonObject

_VERSION = 5  # goes up when the same record is read otherwise than before
_FACILITY_AND_NUMBER = re.compile(r"\s*(\d{1,3})\s*[,:/-]\s*(\d{1,5})\s*")
_PIN = re.compile(r"[0-9]{4,8}")
_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NO_DATE = re.compile(r"(0000-00-00.*)?")
_LONG_AGO = -62_135_596_800_000_000  # the year 1, as far back as dates go
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that would be the year 5138

_NUMBERS_BELOW = 1_000_000_000_000_000
_STATUSES = {
    CardStatus.ACTIVE: "active enabled valid ok open issued activated 1 true",
    CardStatus.SUSPENDED: "suspended disabled inactive locked paused deleted revoked archived pending 0 false",
    CardStatus.BLOCKED: "blocked blacklisted barred banned",
    CardStatus.LOST: "lost stolen missing damaged",
    CardStatus.EXPIRED: "expired ended",
}
_STRICTEST_FIRST = (
    CardStatus.BLOCKED,
    CardStatus.LOST,
    CardStatus.SUSPENDED,
    CardStatus.EXPIRED,
    CardStatus.ACTIVE,
)
_YES, _NO = frozenset({"true", "1", "yes", "on", "y"}), frozenset({"false", "0", "no", "off", "n"})
_STATUS_OF = {word: status for status, words in _STATUSES.items() for word in words.split()}


class CardFieldMap(BaseModel):
    """Names of fields in central's records, the likelier first. A dot goes into a nested object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    printed: tuple[str, ...] = ("number", "printed_number", "card_no", "code", "card_number", "credential", "uid")
    facility: tuple[str, ...] = ("facility_code", "facility", "site_code")
    number: tuple[str, ...] = ("card_number", "card_code", "number", "code", "card_no")
    status: tuple[str, ...] = ("status", "state", "card_status")
    enabled: tuple[str, ...] = ("enabled", "is_enabled", "active", "is_active")
    deleted: tuple[str, ...] = ("deleted", "is_deleted", "deleted_at")
    valid_from: tuple[str, ...] = ("valid_from", "starts_at", "start_date", "activated_at")
    valid_until: tuple[str, ...] = ("valid_until", "expires_at", "expiry_date", "end_date", "valid_to")
    layout: tuple[str, ...] = ("card_format", "format")
    uid: tuple[str, ...] = ("uid", "csn")
    plate: tuple[str, ...] = ("plate", "license_plate", "licence_plate", "plate_number", "vehicle.plate")
    zones: tuple[str, ...] = ("zones", "zone_ids", "access_zones", "zone_id", "zone")
    schedules: tuple[str, ...] = ("schedules", "schedule_ids", "access_schedules", "schedule_id", "schedule")
    owner: tuple[str, ...] = ("customer_id", "owner_id", "customer.id", "guest_id", "user_id")
    first_person: tuple[str, ...] = ("first_person", "is_first_person")
    duress: tuple[str, ...] = ("duress", "is_duress")
    pin: tuple[str, ...] = ("pin", "pin_code")
    holder: tuple[str, ...] = ("holder_name", "holder", "full_name", "name", "customer.name", "guest.name", "user.name")

    def fingerprint(self, zone: tzinfo) -> str:
        """Changes whenever the same record might become another card."""
        return hashlib.sha256(f"{_VERSION} {zone} {self.model_dump_json()}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class MappedCard:
    """A card, and what could not be read of its record ("" when all could)."""

    card: Card
    unread: str = ""

    @property
    def has_credential(self) -> bool:
        """Whether any reading can ever match it."""
        return bool(self.card.aliases)


def record_id(record: JsonObject) -> int | None:
    """The record's id, when it has a usable one."""
    value = record.get("id")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < FIRST_PROVISIONAL_ID else None


def map_card(card_id: int, record: JsonObject, fields: CardFieldMap, zone: tzinfo) -> MappedCard:
    """The card of a record. Dates without an offset are of the site's time zone."""
    unread: list[str] = []
    status = _status(record, fields, unread)
    begins = _moments(record, fields.valid_from, zone, unread, ends=False)
    ends = _moments(record, fields.valid_until, zone, unread, ends=True)
    if unread and status is CardStatus.ACTIVE:
        status = CardStatus.SUSPENDED
    card = Card(
        card_id=card_id,
        number=_text(_first(record, fields.printed))[:MAX_TEXT],
        status=status,
        valid_from=max(begins, default=None),
        valid_until=min(ends, default=None),
        holder=_holder(record, fields)[:MAX_TEXT],
        zones=_names(_first(record, fields.zones)),
        schedules=_names(_first(record, fields.schedules)),
        owner=_text(_first(record, fields.owner))[:MAX_TEXT],
        first_person=_is_yes(_first(record, fields.first_person)),
        duress=_is_yes(_first(record, fields.duress)),
        pin=_pin(_first(record, fields.pin)),
        unread=", ".join(unread),
        aliases=tuple(dict.fromkeys(_aliases(record, fields))),
    )
    return MappedCard(card, ", ".join(unread))


def _aliases(record: JsonObject, fields: CardFieldMap) -> Iterator[str]:
    facility, number = _whole(_first(record, fields.facility)), _whole(_first(record, fields.number))
    layout = layout_named(_text(_first(record, fields.layout)))
    built = layout or H10301
    if facility is not None and number is not None and built.facility_bits and built.holds(facility, number):
        yield built.alias(facility, number)
    if uid := uid_alias(_text(_first(record, fields.uid))):
        yield uid
    if plate := plain_plate(_text(_first(record, fields.plate)))[:MAX_TEXT]:
        yield plate_alias(plate)
        yield near_alias(skeleton(plate))
    stated = [value for name in fields.printed if (value := _at(record, name)) not in (None, "")]
    for place, value in enumerate(stated):
        text = _text(value)
        # The bare number of a card with a facility means little: other facilities' cards carry the same one.
        bare = place > 0 and facility is not None and _whole(value) == number
        if not text or len(text) > MAX_TEXT or bare:
            continue
        yield listed_text_alias(text)
        if facility is None:
            yield from number_aliases(text, layout)
        if pair := _FACILITY_AND_NUMBER.fullmatch(text):
            parts = int(pair[1]), int(pair[2])
            if parts[0] <= 0xFF and parts[1] <= 0xFFFF:
                yield h10301_alias(*parts)


def _pin(value: JsonValue) -> str:
    """4 to 8 digits; what is no PIN opens nothing where one is wanted."""
    text = _text(value)
    return text if _PIN.fullmatch(text) else ""


def _names(value: JsonValue) -> tuple[str, ...]:
    """Names or ids, alone, in a list, or as objects of a list that bear one. What bears none is a name nobody has."""
    items = value if isinstance(value, list) else [value] if value not in (None, "") else []
    named = [item for entry in items for item in (_named(entry) if isinstance(entry, dict) else (_text(entry),))]
    return tuple(dict.fromkeys(name[:MAX_TEXT] for name in named))


def _named(entry: dict[str, JsonValue]) -> tuple[str, ...]:
    """An object's id and name, of which the site file may use either."""
    return tuple(name for key in ("id", "name") if (name := _text(entry.get(key)))) or ("",)


def _is_yes(value: JsonValue) -> bool:
    return _text(value).casefold() in {"true", "1", "yes"}


def _status(record: JsonObject, fields: CardFieldMap, unread: list[str]) -> CardStatus:
    """The strictest status that any field states; names those that cannot be read. Without any it is active."""
    stated = [CardStatus.ACTIVE]
    for name, value in _stated(record, fields.status):
        status = _STATUS_OF.get(_text(value).casefold())
        if status is None:
            unread.append(name)
        stated.append(status or CardStatus.SUSPENDED)
    for name, value in _stated(record, fields.enabled):
        word = _text(value).casefold()
        status = CardStatus.ACTIVE if word in _YES else CardStatus.SUSPENDED if word in _NO else _STATUS_OF.get(word)
        if status is None:
            unread.append(name)
        stated.append(status or CardStatus.SUSPENDED)
    if any(_says_deleted(value) for _, value in _stated(record, fields.deleted)):
        stated.append(CardStatus.SUSPENDED)
    return min(stated, key=_STRICTEST_FIRST.index)


def _says_deleted(value: JsonValue) -> bool:
    """Whether this is a yes, a moment, or an object that may be one."""
    if isinstance(value, dict | list):
        return bool(value)
    text = _text(value).casefold()
    return text not in _NO and _NO_DATE.fullmatch(text) is None


def _moments(record: JsonObject, names: tuple[str, ...], zone: tzinfo, unread: list[str], *, ends: bool) -> list[int]:
    """Every bound that these fields state; names those that cannot be read."""
    found = []
    for name, value in _stated(record, names):
        moment, is_read = _moment(value, zone, ends=ends)
        if not is_read:
            unread.append(name)
        if moment is not None:
            found.append(moment)
    return found


def _moment(value: JsonValue, zone: tzinfo, *, ends: bool) -> tuple[int | None, bool]:
    """Wall micros or None for no bound, and whether the value could be read. A last day lasts until its end."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 < value < _NUMBERS_BELOW:
            return None, value == 0
        return int(value * (1_000 if value >= _MILLISECONDS_FROM else 1_000_000)), True
    text = _text(value)
    if _NO_DATE.fullmatch(text):
        return None, not isinstance(value, dict | list) or not value  # a date in parts is no absent one
    try:
        moment = datetime.fromisoformat(text)
        if _DATE_ONLY.fullmatch(text):
            moment = datetime.combine(moment.date() + timedelta(days=1 if ends else 0), time(), zone)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return (_LONG_AGO if text.startswith("0001") else None), True  # the year 9999: for ever
    except ValueError:
        return None, False
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), True


def _holder(record: JsonObject, fields: CardFieldMap) -> str:
    stated = _text(_first(record, fields.holder))
    names = (_text(record.get("first_name")), _text(record.get("last_name")))
    return stated or " ".join(name for name in names if name)


def _stated(record: JsonObject, names: tuple[str, ...]) -> list[tuple[str, JsonValue]]:
    """Those of these fields that say anything, with what they say."""
    return [(name, value) for name in names if (value := _at(record, name)) not in (None, "")]


def _first(record: JsonObject, names: tuple[str, ...]) -> JsonValue:
    """The first of these fields that says anything; an empty list does not."""
    return next((value for name in names if (value := _at(record, name)) not in (None, "", [])), None)


def _at(record: JsonObject, name: str) -> JsonValue:
    if "." not in name:
        return record.get(name)
    value: JsonValue = record
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _text(value: JsonValue) -> str:
    """A plain value as text; lists, objects and nothing are ""."""
    if value is None or isinstance(value, dict | list):
        return ""
    return " ".join(str(value).split())


def _whole(value: JsonValue) -> int | None:
    """A number, or digits, of 0 and above."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    text = _text(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
