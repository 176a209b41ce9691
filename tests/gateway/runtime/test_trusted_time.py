"""Time while the clock is not trusted: it goes on from the last trusted moment, also over a start and a boot."""

from __future__ import annotations

import asyncio

import pytest
from set_machine import NOON, SetMachine
from waiting import until

from gateway.runtime.clock import Stamp, SystemClock, TrustedTime
from gateway.runtime.supervision import Supervisor
from gateway.runtime.trusted_time import TrustedTimeFile, keep_trusted_time, read_trusted_time

DAY = 86_400_000_000


@pytest.mark.parametrize("days", [3, -3])
def test_step_of_an_untrusted_clock_is_not_followed_until_it_is_trusted_again(days):
    machine = SetMachine()
    clock = SystemClock(machine)
    assert clock.wall() == Stamp(NOON, trusted=True)
    machine.wait(1)
    machine.at, machine.synchronised = machine.at + days * DAY, False
    assert clock.wall() == Stamp(NOON + 1_000_000, trusted=False), "at once, not at the next look every 10 s"
    machine.wait(3600)
    assert clock.wall() == Stamp(NOON + 3_601_000_000, trusted=False)
    machine.at, machine.synchronised = NOON + 3_601_500_000, True
    machine.wait(10)
    assert clock.wall() == Stamp(NOON + 3_611_500_000, trusted=True)


def test_mark_of_timesyncd_counts_after_a_step_only_once_it_is_newer():
    machine = SetMachine(synchronised=False)
    machine.mark = 1
    clock = SystemClock(machine)
    assert clock.wall().trusted
    machine.at += DAY
    assert clock.wall() == Stamp(NOON, trusted=False)
    machine.mark = 2
    machine.wait(10)
    assert clock.wall() == Stamp(NOON + DAY + 10_000_000, trusted=True)


def test_clock_that_was_never_trusted_is_shown_and_ends_nothing_by_a_step():
    machine = SetMachine(synchronised=False)
    clock = SystemClock(machine)
    assert clock.wall().at_least == NOON
    machine.at += 3 * DAY
    machine.wait(1)
    stamp = clock.wall()
    assert (stamp.micros, stamp.at_least) == (NOON + 3 * DAY + 1_000_000, NOON + 1_000_000)
    machine.at -= 9 * DAY
    assert clock.wall().micros == NOON + 1_000_000, "never earlier than is known to have passed"


def test_a_box_that_was_never_set_knows_that_it_is_not_before_the_release():
    machine = SetMachine(at=100_000_000, synchronised=False)
    clock = SystemClock(machine, released=NOON)
    assert clock.wall() == Stamp(100_000_000, trusted=False, least=NOON)
    machine.at, machine.synchronised = NOON + DAY, True
    machine.wait(10)
    assert clock.wall() == Stamp(NOON + DAY + 10_000_000, trusted=True)


def test_start_in_the_same_run_of_the_machine_goes_on_by_monotonic_time():
    clock = SystemClock(SetMachine(at=NOON + 3 * DAY, up=1500.0, synchronised=False))
    clock.recall(TrustedTime("boot", 1_000_000_000, NOON), boot_id="boot")
    assert clock.wall() == Stamp(NOON + 500_000_000, trusted=False)


@pytest.mark.parametrize("shown", [0, NOON + 3 * DAY])
def test_after_a_boot_it_is_known_what_time_it_is_at_least(shown):
    clock = SystemClock(SetMachine(at=shown, up=60.0, synchronised=False))
    clock.recall(TrustedTime("before", 1_000_000_000, NOON), boot_id="boot")
    stamp = clock.wall()
    assert stamp.at_least == NOON + 60_000_000
    assert stamp.micros == max(shown, NOON + 60_000_000)
    assert not stamp.trusted


async def test_trusted_time_is_kept_on_disk_and_an_untrusted_one_is_not(tmp_path):
    assert read_trusted_time(tmp_path) is None
    machine = SetMachine(synchronised=False)
    clock = SystemClock(machine)
    async with Supervisor(clock=clock) as supervisor:
        supervisor.keep("keeper", TrustedTimeFile(folder=tmp_path, clock=clock, boot_id="boot", look=0.01).run)
        await asyncio.sleep(0.1)  # some looks are due meanwhile
        assert read_trusted_time(tmp_path) is None
        machine.synchronised = True
        machine.wait(10)
        await until(lambda: read_trusted_time(tmp_path) is not None)
    assert read_trusted_time(tmp_path) == TrustedTime("boot", 1_010_000_000, NOON + 10_000_000)


def test_damaged_record_is_passed_over(tmp_path):
    keep_trusted_time(tmp_path, TrustedTime("boot", 1, 2))
    path = tmp_path / "trusted-time.json"
    assert path.stat().st_mode & 0o777 == 0o640
    path.write_text("{")
    assert read_trusted_time(tmp_path) is None
