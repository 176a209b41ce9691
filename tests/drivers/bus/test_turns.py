"""The order of turns: scripts of waiting requests, and the one that goes next."""

from __future__ import annotations

import asyncio

import pytest

from drivers.bus.transactions import LONGEST_SCAN_WAIT, Exchange, Priority, Transaction, TransactionQueue, next_turn
from drivers.bus.unit_states import FULL_PROBE_SECONDS, LONGEST_PROBE_WAIT, UnitStates

LIVE, DEAD, DEAD_TOO, NEW = 1, 2, 3, 4
SHORTEST = 0.09


@pytest.fixture
async def line():
    """A live unit that asks every 200 ms, and two dead ones."""
    states = UnitStates()
    for number in range(5):
        states.asked(LIVE, now=99.0 + number * 0.2)
        states.answered(LIVE, took=0.012)
    for unit in (DEAD, DEAD_TOO):
        states.failed(unit, timeout=0.3, now=50.0)
        states.failed(unit, timeout=0.3, now=51.0)
    queue = TransactionQueue(limit=10)

    def ask(unit, priority, at=100.0):
        answer = asyncio.get_running_loop().create_future()
        exchange = Exchange(unit, b"", lambda data: data, tagged=False)
        queue.add(Transaction(exchange, priority, at + 5, 0.3, answer, added_at=at, shortest=SHORTEST))

    def turns(at, count, idle=1.0):
        taken = [next_turn(queue, states, quiet=0.002, idle=idle, now=at) for _ in range(count)]
        return [(item.exchange.unit, item.timeout) if item else None for item in taken]

    return ask, turns


async def test_commands_go_first_and_probes_wait_for_a_pause(line):
    ask, turns = line
    ask(DEAD, Priority.PROBE)
    ask(LIVE, Priority.POLL)
    ask(LIVE, Priority.COMMAND)
    assert [unit for unit, _ in turns(100.0, 2)] == [LIVE, LIVE]


async def test_late_probes_let_a_poll_go_between_them(line):
    ask, turns = line
    late = 100.0 + LONGEST_PROBE_WAIT
    ask(DEAD, Priority.PROBE)
    ask(DEAD_TOO, Priority.PROBE)
    ask(LIVE, Priority.POLL, late)
    ask(LIVE, Priority.POLL, late)
    assert [unit for unit, _ in turns(late, 4)] == [DEAD, LIVE, DEAD_TOO, LIVE]


async def test_one_probe_a_minute_is_waited_for_in_full_on_the_whole_line(line):
    ask, turns = line
    for unit in (DEAD, DEAD_TOO):
        ask(unit, Priority.PROBE)
    late = 100.0 + LONGEST_PROBE_WAIT
    ask(LIVE, Priority.POLL, late)
    (first, _, second) = turns(late, 3)
    assert first == (DEAD, 0.3)
    assert second[1] < 0.1
    ask(DEAD_TOO, Priority.PROBE, late + FULL_PROBE_SECONDS)
    ask(LIVE, Priority.POLL, late + FULL_PROBE_SECONDS)
    assert turns(late + FULL_PROBE_SECONDS + LONGEST_PROBE_WAIT, 1) == [(DEAD_TOO, 0.3)]


async def test_a_scan_goes_only_when_nothing_else_waits_and_the_line_stays_free(line):
    """The live unit asks every 200 ms: at 99.8 last, so at 100.0 again."""
    ask, turns = line
    ask(NEW, Priority.SCAN, 99.8)
    ask(LIVE, Priority.POLL, 99.8)
    assert [unit for unit, _ in turns(99.801, 1)] == [LIVE]
    assert turns(99.95, 1) == [None]
    (unit, timeout), *_ = turns(99.85, 1)
    assert (unit, timeout) == (NEW, pytest.approx(0.138))


async def test_a_scan_that_waited_long_is_content_with_less_but_never_goes_before_a_poll(line):
    ask, turns = line
    late = 99.95
    ask(NEW, Priority.SCAN, late - LONGEST_SCAN_WAIT - 0.01)
    ask(LIVE, Priority.POLL, late)
    assert [unit for unit, _ in turns(late, 2)] == [LIVE, NEW]
    ask(NEW, Priority.SCAN, late - LONGEST_SCAN_WAIT - 0.01)
    assert turns(99.99, 1) == [None]
    ask(DEAD, Priority.PROBE, 99.85)
    assert turns(99.85, 1) == [None]  # the pause is too short for the probe, and the scan waits behind it
    assert [unit for unit, _ in turns(99.85 + LONGEST_PROBE_WAIT, 1)] == [DEAD]


async def test_a_scan_waits_until_whoever_was_answered_has_asked_again(line):
    ask, turns = line
    ask(NEW, Priority.SCAN, 99.8)
    assert turns(99.85, 1, idle=0.001) == [None]
    assert turns(99.85, 1, idle=0.01) != [None]
