"""Corrections of the times of events and passages, once the error of the clock that stamped them is known."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.runtime.clock import ClockOffset

AT_A_TIME = 1_000
_SAME_MICROS = 1_000_000
_MOST = 64
_SPANS = (12, 17)
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Events from `first_id` on that an untrusted clock stamped, which was `micros` ahead of monotonic time."""

    first_id: int
    micros: int


def with_untrusted(known: tuple[Untrusted, ...], first_id: int, offset: ClockOffset) -> tuple[Untrusted, ...]:
    """Return what is known of untrusted events with one more from this id on; the same unless the clock was set since.

    Of a clock that is set again and again, the first settings are remembered.
    """
    if len(known) >= _MOST or (known and abs(known[-1].micros - offset.micros) < _SAME_MICROS):
        return known
    return (*known, Untrusted(first_id, offset.micros))


def correct_events(
    connection: sqlite3.Connection, stamped: Sequence[Untrusted], true: ClockOffset
) -> tuple[Untrusted, ...]:
    """Move the times of untrusted events and their passages to the trusted clock, within a running transaction.

    At most `AT_A_TIME` events; return what is left.
    """
    for place, part in enumerate(stamped):
        end = stamped[place + 1].first_id if place + 1 < len(stamped) else _HIGHEST
        by = true.micros - part.micros
        moved = connection.execute(
            "UPDATE event SET date_at = date_at + ?, clock_trusted = 1, recorded_at = recorded_at + ? WHERE id IN"
            " (SELECT id FROM event WHERE id >= ? AND id < ? AND clock_trusted = 0 ORDER BY id LIMIT ?)"
            " RETURNING id, date_at",
            (by, by, part.first_id, end, AT_A_TIME),
        ).fetchall()
        if not moved:
            continue
        last = max(event_id for event_id, _ in moved)
        connection.execute(
            "UPDATE passage SET started_at = started_at + ?, ended_at = ended_at + ?, clock_trusted = 1"
            " WHERE event_id BETWEEN ? AND ? AND clock_trusted = 0",
            (by, by, part.first_id, last),
        )
        for span in _SPANS:
            connection.executemany(
                "UPDATE event_range SET date_min = min(date_min, ?), date_max = max(date_max, ?)"
                " WHERE span = ? AND number = ?",
                [(date_at, date_at, span, event_id >> span) for event_id, date_at in moved],
            )
        if len(moved) == AT_A_TIME:
            return (Untrusted(last + 1, part.micros), *stamped[place + 1 :])
    return ()
