"""Faults of a stream that is recorded: told when they come again, and over after a quiet while."""

from __future__ import annotations

import pytest

from gateway.camera_worker.recorder import QUIET_SECONDS, StreamFaults
from gateway.domain.footage import StreamFault

AGAIN = (StreamFault.TIMES_JUMP, StreamFault.PACKETS_LOST, StreamFault.LEAVES_OUT, StreamFault.FALLS_BEHIND)


def signed(fault, *moments):
    faults = StreamFaults()
    for moment in moments:
        faults.sign(fault, moment)
    return faults.present(moments[-1])


@pytest.mark.parametrize("fault", AGAIN)
def test_a_fault_counts_once_it_has_come_three_times_within_a_minute(fault):
    assert signed(fault, 0, 60) == ()
    assert signed(fault, 0, 30, 60) == (fault,)
    assert signed(fault, 0, 30, 61) == ()


def test_a_stream_without_entry_points_counts_at_once():
    assert signed(StreamFault.NO_ENTRY_POINTS, 10) == (StreamFault.NO_ENTRY_POINTS,)


def test_a_fault_is_over_after_a_quiet_while_and_lasts_while_signs_go_on():
    faults = StreamFaults()
    for moment in (0, 1, 2, 25, 50):
        faults.sign(StreamFault.PACKETS_LOST, moment)
    assert faults.present(50 + QUIET_SECONDS - 1) == (StreamFault.PACKETS_LOST,)
    assert faults.present(50 + QUIET_SECONDS) == ()
    faults.sign(StreamFault.PACKETS_LOST, 90)
    assert faults.present(90) == (), "a single hole afterwards is one hole"


def test_faults_are_told_beside_each_other():
    faults = StreamFaults()
    for moment in (1, 2, 3):
        faults.sign(StreamFault.PACKETS_LOST, moment)
        faults.sign(StreamFault.TIMES_JUMP, moment)
    assert faults.present(3) == (StreamFault.TIMES_JUMP, StreamFault.PACKETS_LOST)
