"""Owned tasks: restarts, siblings, leaving, and what the watchdog is fed by."""

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from set_machine import SetClock
from structlog.testing import capture_logs

from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff, Progress, Supervisor

FAST = Backoff(first=0.001, longest=0.01)


def supervisor():
    return Supervisor(clock=SystemClock(), backoff=FAST)


class Child:
    """Fails with each of `faults` in turn, then lives on."""

    def __init__(self, *faults):
        self.faults = list(faults)
        self.starts = 0
        self.alive = asyncio.Event()
        self.cancelled = False

    async def __call__(self):
        self.starts += 1
        if self.faults:
            raise self.faults.pop(0)
        self.alive.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_a_failed_child_is_restarted_and_named_in_the_log():
    child = Child(ValueError("first"), OSError("second"))
    with capture_logs() as logs:
        async with asyncio.timeout(30), supervisor() as owner:
            owner.keep("north-entry", child)
            await child.alive.wait()
    assert child.starts == 3
    assert [(entry["event"], entry["task"]) for entry in logs] == [("task_failed", "north-entry")] * 2


async def test_a_child_that_merely_ends_is_started_again():
    ends = 0
    again = asyncio.Event()

    async def short():
        nonlocal ends
        ends += 1
        if ends == 3:
            again.set()

    with capture_logs() as logs:
        async with asyncio.timeout(30), supervisor() as owner:
            owner.keep("short", short)
            await again.wait()
    assert {entry["event"] for entry in logs} == {"task_ended"}


async def test_a_cancellation_from_within_is_a_failure_like_any_other():
    child = Child(asyncio.CancelledError())
    with capture_logs() as logs:
        async with asyncio.timeout(30), supervisor() as owner:
            owner.keep("camera", child)
            await child.alive.wait()
    assert child.starts == 2
    assert [entry["event"] for entry in logs] == ["task_failed"]


async def test_a_sibling_notices_nothing():
    steady, shaky = Child(), Child(*(RuntimeError(str(number)) for number in range(4)))
    with capture_logs():
        async with asyncio.timeout(30), supervisor() as owner:
            owner.keep("steady", steady)
            owner.keep("shaky", shaky)

            async def once():
                raise RuntimeError("once")

            await asyncio.wait([owner.once("single", once())])
            await shaky.alive.wait()
            assert steady.starts == 1
            assert not steady.cancelled


async def test_leaving_cancels_and_waits_for_all():
    children = [Child(), Child()]
    tidied = []

    async def slow_to_end():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)  # its end takes a while
            tidied.append(1)

    async with asyncio.timeout(30), supervisor() as owner:
        for number, child in enumerate(children):
            owner.keep(f"child-{number}", child)
        owner.once("slow", slow_to_end())
        for child in children:
            await child.alive.wait()
    assert all(child.cancelled for child in children)
    assert tidied == [1]


async def test_a_child_that_is_cancelled_before_its_first_step_is_closed():
    """Python would warn of one that was never awaited; warnings are errors here."""
    begun = Child()
    async with supervisor() as owner:
        owner.once("single", begun())
    gc.collect()
    assert begun.starts == 0


async def test_a_cancelled_child_ends_for_good_and_alone():
    one, other = Child(), Child()
    async with asyncio.timeout(30), supervisor() as owner:
        task = owner.keep("one", one)
        owner.keep("other", other)
        await one.alive.wait()
        await other.alive.wait()
        task.cancel()
        await asyncio.wait([task])
        assert one.starts == 1
        assert not other.cancelled


async def test_what_the_body_raises_goes_on_as_it_was():
    child = Child()

    async def body():
        async with supervisor() as owner:
            owner.keep("child", child)
            await child.alive.wait()
            raise ValueError("the body's own")

    with pytest.raises(ValueError, match="the body's own"):
        await body()
    assert child.cancelled


async def test_the_outer_cancellation_goes_through():
    child = Child()

    async def outer():
        async with supervisor() as owner:
            owner.keep("child", child)
            await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(outer())
        await child.alive.wait()
        task.cancel()
    assert task.cancelled()
    assert child.cancelled


async def test_nothing_starts_while_leaving():
    refused = []

    async def starts_another(owner):
        try:
            await asyncio.Event().wait()
        finally:
            for start in (lambda: owner.keep("late", Child()), lambda: owner.once("late", Child()())):
                try:
                    start()
                except RuntimeError as error:
                    refused.append(str(error))

    async with asyncio.timeout(30), supervisor() as owner:
        owner.once("first", starts_another(owner))
        await asyncio.sleep(0)
    assert refused == ["task 'late' was started while its supervisor was being left"] * 2


@given(
    first=st.floats(0.001, 10),
    longest=st.floats(0.001, 600),
    failures=st.integers(1, 10_000),
)
def test_backoff_keeps_its_bounds(first, longest, failures):
    wait = Backoff(first=first, longest=longest).wait(failures)
    full = min(longest, first * 2 ** min(failures - 1, 16))
    assert full / 2 <= wait <= full


def test_progress_names_what_is_overdue():
    clock = SetClock()
    progress = Progress(clock=clock)
    progress.expect("writer", within=2)
    progress.expect("bus", within=5)
    clock.seconds += 2
    assert progress.stuck() == ()
    clock.seconds += 0.1
    assert progress.stuck() == ("writer",)
    clock.seconds += 5
    assert progress.stuck() == ("bus", "writer")
    progress.beat("writer")
    progress.forget("bus")
    progress.beat("never expected")
    clock.seconds += 1
    assert progress.stuck() == ()


def test_waits_are_spread_where_many_lose_one_server():
    waits = [Backoff(first=1.0, longest=60.0, spread=4.0).wait(1) for _ in range(2000)]
    assert 0.5 <= min(waits) < 1.0
    assert 4.0 < max(waits) <= 5.0
    assert 0.15 < sum(wait < 1.75 for wait in waits) / len(waits) < 0.35, "a quarter in each quarter"
