"""The records of a plausible site for the simulated central."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.runtime.clock import Stamp, iso_utc
from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.tables import Tables

_DAY = 86_400_000_000
_FIRST_CARD_ID = 4001
_PER_FACILITY = 50_000
_ALWAYS_GOOD = 8
_FIRST_NAMES = ("Ada", "Bruno", "Chloe", "Dario", "Emma", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kim", "Lea")
_LAST_NAMES = ("Tremblay", "Gagnon", "Roy", "Singh", "Moreau", "Nguyen", "Olsen", "Petit", "Quist", "Rossi", "Stone")


def seed_site(
    tables: Tables, *, now: Stamp, devices: Mapping[int, str], cameras: Mapping[int, str], cards: int
) -> None:
    """Add devices and cameras by id and name, and a number of access cards.

    Records that exist already are left alone, and cards are added only to an empty table. The first eight cards are
    good; some of the later ones are suspended, lost, expired or not yet valid.
    """
    for device_id, name in devices.items():
        if device_id not in tables.devices:
            tables.devices.put(_device(device_id, name, now))
    for camera_id, name in cameras.items():
        if camera_id not in tables.cameras:
            tables.cameras.put(_camera(camera_id, name, now))
    if not tables.cards:
        for index in range(cards):
            tables.cards.put(_card(index, now))


def _device(device_id: int, name: str, now: Stamp) -> JsonObject:
    return {
        "id": device_id,
        "name": name,
        "description": "",
        "type": 3,
        "serial_number": f"SN{device_id:08d}",
        "location": "North car park",
        "status": "online",
        "enabled": True,
        "company_id": 3,
        "zone_id": 7,
        "firmware": "4.2.1",
        "created_at": iso_utc(now.micros - 400 * _DAY),
        "updated_at": iso_utc(now.micros - 20 * _DAY),
    }


def _camera(camera_id: int, name: str, now: Stamp) -> JsonObject:
    return {
        "id": camera_id,
        "name": name,
        "stream": "",
        "manufacturer": "Generic",
        "recording": True,
        "company_id": 3,
        "created_at": iso_utc(now.micros - 300 * _DAY),
    }


def card_number(index: int) -> tuple[int, int]:
    """Return facility and number of a seeded card, counted from 0; no two cards have the same."""
    # The factor is odd, so that no number occurs twice within a facility.
    return 1 + index // _PER_FACILITY, (index % _PER_FACILITY * 7919 + 11572) % 65536


def plate_of(index: int) -> str:
    """Return the plate of the vehicle that a seeded card belongs to."""
    return f"DM{index:05d}"


def _card(index: int, now: Stamp) -> JsonObject:
    facility, number = card_number(index)
    status, valid_from, valid_until = _status_and_validity(index, now)
    first, last = _FIRST_NAMES[index % len(_FIRST_NAMES)], _LAST_NAMES[index % len(_LAST_NAMES)]
    return {
        "id": _FIRST_CARD_ID + index,
        "uuid": f"00000000-0000-4000-8000-{index:012d}",
        "number": f"{facility:03d}{number:05d}",
        "facility_code": facility,
        "card_number": number,
        "card_format": "H10301",
        "type": "proximity",
        "plate": plate_of(index),
        "status": status,
        "holder_name": f"{first} {last}",
        "customer_id": 9000 + index // 3,
        "company_id": 3,
        "valid_from": iso_utc(valid_from),
        "valid_until": iso_utc(valid_until) if valid_until is not None else None,
        "note": "",
        "created_at": iso_utc(now.micros - 200 * _DAY),
        "updated_at": iso_utc(now.micros - 10 * _DAY),
    }


def _status_and_validity(index: int, now: Stamp) -> tuple[str, int, int | None]:
    """Return status, first and last moment of a card."""
    began = now.micros - 200 * _DAY
    if index < _ALWAYS_GOOD:
        return "active", began, None
    if index % 12 == 3:
        return "suspended", began, None
    if index % 20 == 9:
        return "lost", began, None
    if index % 15 == 11:
        return "active", began, now.micros - 3 * _DAY
    if index % 40 == 18:
        return "active", now.micros + 7 * _DAY, None
    return "active", began, now.micros + 365 * _DAY
