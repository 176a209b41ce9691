from __future__ import annotations

import asyncio
import contextlib

import pytest

from simulation.virtual_site.virtual_time import DeadEnd, VirtualClock, VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_timers_of_one_instant_ring_in_their_order(loop):
    rung = []
    for number in range(50):
        loop.call_at(5.0, rung.append, number)
    loop.run_until_complete(asyncio.sleep(5.0))
    assert rung == list(range(50))


def test_a_group_cancels_its_tasks_in_an_order_that_does_not_depend_on_their_addresses():
    kept, orders = [], []

    async def wait(number, ended):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    async def run():
        ended = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1), asyncio.TaskGroup() as group:
                kept.extend(group.create_task(wait(number, ended)) for number in range(50))
        return ended

    for _ in range(2):  # tasks that are kept have other addresses than the next ones
        with contextlib.closing(VirtualLoop()) as loop:
            orders.append(loop.run_until_complete(run()))
    assert sorted(orders[0]) == list(range(50))
    assert orders[0] == orders[1]


def test_quiet_stretches_are_jumped_over(loop):
    rung = []

    async def beat():
        while True:
            await asyncio.sleep(2)
            rung.append(loop.time())

    async def work():
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(beat())
            await asyncio.sleep(5)
            loop.quiet_until = lambda: 1000.0
            await asyncio.sleep(1000 - 5)
            loop.quiet_until = None
            await asyncio.sleep(3)
            beating.cancel()

    loop.run_until_complete(work())
    assert rung == [2, 4, 1000, 1002]


def test_nothing_left_to_happen_is_an_error(loop):
    with pytest.raises(DeadEnd):
        loop.run_until_complete(asyncio.Event().wait())


def test_jobs_are_done_in_place_and_known_later(loop):
    done = []

    class Slow:
        def do(self, job):
            result = job()
            return (lambda: result), 0.5

    loop.work = Slow()

    async def work():
        future = loop.run_in_executor(None, lambda: done.append("now") or "result")
        assert done == ["now"]
        assert not future.done()
        return await future

    assert loop.run_until_complete(work()) == "result"
    assert loop.time() == 0.5


def test_clock_that_steps_is_not_followed_until_it_is_put_right():
    now = 10.0
    clock = VirtualClock(monotonic=lambda: now, start_micros=1_000_000)
    assert (clock.wall().micros, clock.wall().trusted) == (11_000_000, True)
    clock.step(-5)
    assert (clock.wall().micros, clock.wall().trusted) == (11_000_000, False)
    assert clock.monotonic() == 10.0
    assert clock.true_micros() == 11_000_000
    clock.synchronise()
    assert (clock.wall().micros, clock.wall().trusted) == (11_000_000, True)
