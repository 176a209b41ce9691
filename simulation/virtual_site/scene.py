"""The simulated site: its file, its lanes and its cards."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from gateway.domain.credentials import Card, CardStatus, text_alias
from gateway.site import Site
from simulation.virtual_site.lane_field import ARMING, CLOSING, FIRE, PHOTOCELL, LaneField
from simulation.virtual_site.surroundings import dice_of

START_MICROS = 1_772_323_200_000_000
"""The wall time at the begin of a simulation, in microseconds: 2026-03-01 00:00 UTC."""

_YEAR = 31_557_600_000_000
_DAY = 86_400_000_000
_MARGIN_DAYS = 60
_GOOD, _BAD = 60, 12
UNKNOWN_CARD = "NOT-ON-THE-LIST"


def site_of(lanes: int) -> Site:
    """Make a site with this number of lanes. The gateway closes their gates; each has a photocell, reader and camera.

    Every second lane has its photocell on one input module and a fire input on another. Every fourth lane refuses cards
    with a limited validity while the clock is not trusted.
    """
    numbers = range(lanes)
    return Site.model_validate(
        {
            "site": {"name": "Simulated site"},
            "links": [
                {"id": "line", "url": "tcp://gates.invalid:502"},
                {"id": "modules", "url": "tcp://modules.invalid:502"},
            ],
            "devices": [
                *map(_gate, numbers),
                *map(_reader, numbers),
                *map(_module, chain.from_iterable(map(modules_of, numbers))),
            ],
            "lanes": [_lane(number) for number in numbers],
        }
    )


def lane_id(number: int) -> str:
    """Return a lane's id."""
    return f"lane-{number + 1}"


def gate_id(number: int) -> int:
    """Return the id of a lane's gate."""
    return 100 + number


def reader_id(number: int) -> int:
    """Return the id of a lane's reader."""
    return 500 + number


def modules_of(number: int) -> dict[int, tuple[str, ...]]:
    """List a lane's input modules and points: every second lane has one for its photocell and one for a fire."""
    return {} if number % 2 else {700 + number: (PHOTOCELL,), 800 + number: (FIRE,)}


def fields_of(lanes: int, *, seed: int) -> dict[int, LaneField]:
    """Make the field of each lane, by the lane's number."""
    return {
        number: LaneField(
            lane_id=lane_id(number),
            gate_id=gate_id(number),
            reader_id=reader_id(number),
            modules=modules_of(number),
            has_limit_switches=number % 4 == 1,
            dice=dice_of(seed, f"lane-{number}"),
        )
        for number in range(lanes)
    }


def refuses_unsure_time(number: int) -> bool:
    """Return whether a lane refuses cards with days while the clock is not trusted."""
    return number % 4 == 3


def good_cards(*, days: float = 30.0) -> tuple[Card, ...]:
    """Return the cards that may pass. Half of them are valid until two months after the end of a run of `days` days.

    After a clock step, a gateway may take those for expired or not yet valid.
    """
    cards = (_card(4000 + index, CardStatus.ACTIVE) for index in range(_GOOD))
    since, until = START_MICROS - _MARGIN_DAYS * _DAY, START_MICROS + int((days + _MARGIN_DAYS) * _DAY)
    return tuple(replace(card, valid_from=since, valid_until=until) if card.card_id % 2 else card for card in cards)


def bad_cards() -> tuple[Card, ...]:
    """Return the cards that may not pass."""
    states = (CardStatus.SUSPENDED, CardStatus.LOST, CardStatus.EXPIRED, CardStatus.ACTIVE)
    cards = (_card(6000 + index, states[index % len(states)]) for index in range(_BAD))
    past = START_MICROS - 5 * _YEAR
    return tuple(replace(card, valid_until=past) if card.status is CardStatus.ACTIVE else card for card in cards)


def cards_with_days() -> frozenset[int]:
    """Return the ids of the cards that are valid from or until a moment."""
    return frozenset(card.card_id for card in (*good_cards(), *bad_cards()) if card.valid_until is not None)


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


def _module(number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": f"Inputs {number}",
        "driver": "modbus-io",
        "link": "modules",
        "profile": "simulated-inputs",
        "unit": number % 247 + 1,
    }


def _lane(number: int) -> dict[str, object]:
    gate = gate_id(number)
    of_point = {point: module for module, points in modules_of(number).items() for point in points}
    return {
        "id": lane_id(number),
        "name": f"Lane {number + 1}",
        "direction": "exit" if number % 2 else "entry",
        "gate": gate,
        "readers": [reader_id(number)],
        "cameras": [900 + number],
        "closes": "gateway",
        "doubt": {"clock": "secure" if refuses_unsure_time(number) else "usual"},
        "inputs": [
            {"role": "arming", "device": gate, "point": ARMING},
            {"role": "closing", "device": gate, "point": CLOSING},
            {"role": "safety", "device": of_point.get(PHOTOCELL, gate), "point": PHOTOCELL},
            *([{"role": "fire", "device": of_point[FIRE], "point": FIRE}] if FIRE in of_point else []),
        ],
    }
