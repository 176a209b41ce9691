"""The simulated site: its file, its lanes and its cards."""

from __future__ import annotations

from dataclasses import replace

from gateway.domain.credentials import Card, CardStatus, text_alias
from gateway.simulation.lane_field import ARMING, CLOSING, PHOTOCELL
from gateway.site import Site

START_MICROS = 1_772_323_200_000_000
"""The wall at the beginning: 2026-03-01 00:00 UTC."""

_YEAR = 31_557_600_000_000
_GOOD, _BAD = 60, 12
UNKNOWN_CARD = "NOT-ON-THE-LIST"


def site_of(lanes: int) -> Site:
    """A site file with so many lanes, closed by the gateway, each with a photocell, a reader and a camera."""
    numbers = range(lanes)
    return Site.model_validate(
        {
            "site": {"name": "Simulated site"},
            "links": [{"id": "line", "url": "tcp://gates.invalid:502"}],
            "devices": [*map(_gate, numbers), *map(_reader, numbers)],
            "lanes": [_lane(number) for number in numbers],
        }
    )


def lane_id(number: int) -> str:
    """A lane's id."""
    return f"lane-{number + 1}"


def gate_id(number: int) -> int:
    """Its gate's id."""
    return 100 + number


def reader_id(number: int) -> int:
    """Its reader's id."""
    return 500 + number


def good_cards() -> tuple[Card, ...]:
    """Cards that may pass; some are valid from years ago until years from now."""
    cards = (_card(4000 + index, CardStatus.ACTIVE) for index in range(_GOOD))
    since, until = START_MICROS - 5 * _YEAR, START_MICROS + 5 * _YEAR
    return tuple(replace(card, valid_from=since, valid_until=until) if card.card_id % 2 else card for card in cards)


def bad_cards() -> tuple[Card, ...]:
    """Cards that may not."""
    states = (CardStatus.SUSPENDED, CardStatus.LOST, CardStatus.EXPIRED, CardStatus.ACTIVE)
    cards = (_card(6000 + index, states[index % len(states)]) for index in range(_BAD))
    past = START_MICROS - 5 * _YEAR
    return tuple(replace(card, valid_until=past) if card.status is CardStatus.ACTIVE else card for card in cards)


def _card(number: int, status: CardStatus) -> Card:
    return Card(
        number, f"{number:06d}", status=status, holder=f"Holder {number}", aliases=(text_alias(f"{number:06d}"),)
    )


def _gate(number: int) -> dict[str, object]:
    return {
        "id": gate_id(number),
        "name": f"Gate {number + 1}",
        "driver": "modbus-gate",
        "link": "line",
        "profile": "relay-barrier",
        "unit": number % 247 + 1,
    }


def _reader(number: int) -> dict[str, object]:
    return {"id": reader_id(number), "name": f"Reader {number + 1}", "driver": "serial-reader", "link": "line"}


def _lane(number: int) -> dict[str, object]:
    gate = gate_id(number)
    return {
        "id": lane_id(number),
        "name": f"Lane {number + 1}",
        "direction": "exit" if number % 2 else "entry",
        "gate": gate,
        "readers": [reader_id(number)],
        "cameras": [900 + number],
        "closes": "gateway",
        "arming": {"device": gate, "point": ARMING},
        "closing": {"device": gate, "point": CLOSING},
        "safety": [{"device": gate, "point": PHOTOCELL}],
    }
