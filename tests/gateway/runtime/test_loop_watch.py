"""The watch over the event loop names the task that holds it up."""

from __future__ import annotations

import asyncio
import threading

from waiting import until

from gateway.runtime.loop_watch import LoopWatch

_PAUSE = threading.Event()


def hold_until_seen(watch: LoopWatch) -> str:
    """Hold the loop up until the watch has noticed; it is generous, for a machine that is busy."""
    for _ in range(3000):
        if watch.guilty:
            return watch.guilty
        _PAUSE.wait(0.01)
    raise AssertionError("the watch did not look")


async def counted(watch: LoopWatch, task: str) -> int:
    await until(lambda: task in watch.held())
    return watch.held()[task]


async def held(watch: LoopWatch, name: str | None) -> str:
    async def hold() -> str:
        return hold_until_seen(watch)

    async with asyncio.TaskGroup() as group:
        holding = group.create_task(hold(), name=name)
    return holding.result()


async def watched(watch: LoopWatch) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(watch.run())
    await until(lambda: watch.lag.count)
    return task


async def test_the_task_that_holds_the_loop_up_is_named_and_counted():
    watch = LoopWatch(period=0.1)
    watching = await watched(watch)
    assert await held(watch, "lane-main") == "lane-main"
    assert await counted(watch, "lane-main") == 1
    assert watch.lag.sum > 0.1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_a_task_without_a_name_is_known_by_its_code():
    watch = LoopWatch(period=0.1)
    watching = await watched(watch)
    assert await held(watch, None) == "held.<locals>.hold"
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_names_are_bounded():
    watch = LoopWatch(period=0.1, most_names=2)
    watching = await watched(watch)
    for number in range(4):
        before = sum(watch.held().values())
        assert await held(watch, f"job {number}") == f"job {number}"
        await until(lambda before=before: sum(watch.held().values()) != before)
    assert watch.held()["others"] >= 2
    assert len(watch.held()) == 3
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_long_holds_that_come_again_are_told_with_their_task_until_half_a_minute_is_quiet():
    watch = LoopWatch(period=0.1)
    watching = await watched(watch)
    loop = asyncio.get_running_loop()

    async def hold() -> None:
        until = loop.time() + 0.8
        while loop.time() < until:
            pass  # it computes

    for number in range(1, 4):
        assert watch.held_again(loop.time()) is None
        async with asyncio.TaskGroup() as group:
            group.create_task(hold(), name="lane-main")
        await until(lambda number=number: watch.held().get("lane-main", 0) >= number)
    found = watch.held_again(loop.time())
    assert found is not None
    assert found.task == "lane-main"
    assert watch.held_again(found.at + 29.0) == found
    assert watch.held_again(found.at + 30.0) is None
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
