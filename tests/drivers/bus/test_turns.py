"""Whose turn it is: scripts of what waits, and what goes."""

from __future__ import annotations

import asyncio

import pytest

from drivers.bus.occupancy import FULL_PROBE_SECONDS, LONGEST_PROBE_WAIT, Occupancy
from drivers.bus.transactions import Exchange, Priority, Transaction, TransactionQueue, next_turn

LIVE, DEAD, DEAD_TOO = 1, 2, 3


@pytest.fixture
async def line():
    """A live unit that asks every 200 ms, and two dead ones."""
    occupancy = Occupancy()
    for number in range(5):
        occupancy.asked(LIVE, now=99.0 + number * 0.2)
        occupancy.answered(LIVE, took=0.012)
    for unit in (DEAD, DEAD_TOO):
        occupancy.failed(unit, timeout=0.3, now=50.0)
        occupancy.failed(unit, timeout=0.3, now=51.0)
    queue = TransactionQueue(limit=10)

    def ask(unit, priority, at=100.0):
        answer = asyncio.get_running_loop().create_future()
        exchange = Exchange(unit, b"", lambda data: data, tagged=False)
        queue.add(Transaction(exchange, priority, at + 5, 0.3, answer, added_at=at))

    def turns(at, count):
        taken = [next_turn(queue, occupancy, quiet=0.002, idle=1.0, now=at) for _ in range(count)]
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
