"""Both clocks: exact conversions, and trust asked of the machine at most every 10 s."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from set_machine import SetMachine

from gateway.runtime import clock
from gateway.runtime.clock import Stamp, SystemClock, WallTimes, iso_utc, micros_of

YEAR_2200 = 7_258_118_400_000_000
MICROS = st.integers(min_value=0, max_value=YEAR_2200)


@given(MICROS)
def test_a_stamp_becomes_the_exact_datetime(micros):
    moment = Stamp(micros=micros, trusted=True).as_datetime()
    assert (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) == micros


@given(MICROS)
def test_iso_text_is_the_moment_cut_to_milliseconds(micros):
    text = iso_utc(micros)
    assert len(text) == len("2026-01-31T12:00:00.000Z")
    read = datetime.fromisoformat(text)
    assert (read - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) == micros // 1_000


def test_iso_text_as_the_interface_writes_it():
    assert iso_utc(1_769_860_800_000_000) == "2026-01-31T12:00:00.000Z"
    assert iso_utc(1_769_860_800_999_999) == "2026-01-31T12:00:00.999Z"


def test_a_written_moment_is_read_by_its_offset_or_in_the_given_zone():
    assert micros_of("2026-01-31T12:00:00.000Z") == micros_of("2026-01-31T13:00:00+01:00") == 1_769_860_800_000_000
    assert micros_of("2026-01-31T13:00:00", ZoneInfo("Europe/Paris")) == 1_769_860_800_000_000
    assert micros_of("2026-01-31T12:00:00Z", ZoneInfo("Europe/Paris")) == 1_769_860_800_000_000
    with pytest.raises(ValueError, match="no offset"):
        micros_of("2026-01-31T12:00:00")


def test_the_system_clock_is_the_machines():
    system = SystemClock()
    before, stamp, after = time.time_ns() // 1_000, system.wall(), time.time_ns() // 1_000
    assert before <= stamp.micros <= after
    earlier, now, later = time.monotonic(), system.monotonic(), time.monotonic()
    assert earlier <= now <= later


def test_trust_comes_from_the_kernel_or_the_mark_and_is_kept_a_while(monkeypatch, tmp_path):
    class Unsynchronised:
        def adjtimex(self, _buffer):
            return 5

    monkeypatch.setattr(clock.ctypes, "CDLL", lambda *_args, **_options: Unsynchronised())
    mark = tmp_path / "synchronized"
    monkeypatch.setattr(clock, "MARKS", (mark,))
    system = SystemClock()
    assert not system.wall().trusted
    mark.touch()
    assert not system.wall().trusted, "asked again within 10 s"
    assert SystemClock().wall().trusted


def stepped(machine, *, by):
    system = SystemClock(machine)
    system.wall()
    machine.wait(1.0)
    machine.at += int(by * 1_000_000)
    system.wall()
    return system


def test_a_trusted_clock_that_was_set_says_by_how_much_for_a_quarter_of_an_hour():
    machine = SetMachine()
    system = stepped(machine, by=-90.0)
    assert system.stepped() == -90.0
    machine.wait(899.0)
    system.wall()
    assert system.stepped() == -90.0
    machine.wait(1.0)
    assert system.stepped() == 0.0


def test_small_corrections_and_the_first_setting_of_a_clock_are_no_steps():
    assert stepped(SetMachine(), by=0.9).stepped() == 0.0
    assert stepped(SetMachine(synchronised=False), by=90.0).stepped() == 0.0


def test_a_moment_moves_with_a_clock_that_is_set_and_with_nothing_less():
    machine = SetMachine(synchronised=False)
    times, moment = WallTimes(SystemClock(machine)), machine.up
    begun = times.of(moment)
    machine.wait(60.0)
    machine.at += 40_000  # a time server corrects slowly
    assert times.of(moment) == begun
    machine.at += 3600 * 1_000_000
    assert times.of(moment) == begun + 3600 * 1_000_000 + 40_000
