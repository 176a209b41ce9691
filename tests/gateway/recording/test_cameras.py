"""Events that follow from workers' reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition, CameraReported, GapReason, SegmentFinished, StreamFault
from gateway.recording.cameras import CameraState
from gateway.runtime.clock import Stamp

NOW = Stamp(micros=1_000_000_000, trusted=True)
FRESH = CameraState(camera_id=7, name="Gate camera", since=0)


def after(state, *reports):
    kinds = []
    for condition in reports:
        report = CameraReported(camera_id=7, condition=condition, detail="nobody answers", reconnects=2)
        state, events = state.reported(report, NOW)
        kinds += [event.kind for event in events]
    return state, kinds


def segment(start: float, gap: GapReason = GapReason.NONE) -> SegmentFinished:
    micros = int(start * 1_000_000)
    return SegmentFinished(
        camera_id=7, path=f"7/1970010100/{micros}_2000000.ts", started_at=micros, clock_trusted=True,
        duration=2_000_000, size=1, gap=gap,
    )  # fmt: skip


def test_a_loss_and_a_recovery_are_told_once_each():
    c = CameraCondition
    _, kinds = after(
        FRESH, c.STARTING, c.RECORDING, c.RECORDING, c.UNREACHABLE, c.REFUSED, c.STARTING, c.STALLED, c.RECORDING
    )
    assert kinds == [EventKind.CAMERA_RECORDING, EventKind.CAMERA_LOST, EventKind.CAMERA_RECORDING]


def test_since_is_when_the_condition_changed_and_figures_are_not_a_change():
    state, _ = after(FRESH, CameraCondition.RECORDING)
    later, _ = state.reported(
        CameraReported(camera_id=7, condition=CameraCondition.RECORDING, detail="nobody answers", bits_per_second=9),
        Stamp(micros=NOW.micros + 5, trusted=True),
    )
    assert later.snapshot().since == NOW.micros
    assert later.snapshot().bits_per_second == 9
    assert later.looks_like(state)
    assert not state.looks_like(FRESH)


def test_a_lost_worker_is_no_loss_of_the_camera_but_its_recovery_is_told():
    state, _ = after(FRESH, CameraCondition.RECORDING)
    state, kinds = after(state.worker_lost(NOW), CameraCondition.STARTING, CameraCondition.RECORDING)
    assert kinds == [EventKind.CAMERA_RECORDING]
    assert state.reconnects == 4
    lost, _ = after(FRESH, CameraCondition.REFUSED)
    assert after(lost.worker_lost(NOW), CameraCondition.REFUSED)[1] == []


def test_faults_of_a_stream_show_at_once_and_only_while_it_is_recorded():
    report = CameraReported(
        camera_id=7, condition=CameraCondition.RECORDING, faults=(StreamFault.TIMES_JUMP,), detail="nobody answers"
    )
    plain, _ = after(FRESH, CameraCondition.RECORDING)
    state, events = plain.reported(report, NOW)
    assert state.snapshot().faults == (StreamFault.TIMES_JUMP,)
    assert not state.looks_like(plain)
    assert events == ()
    assert state.worker_lost(NOW).snapshot().faults == ()
    for ended in (
        state.failed(CameraCondition.DISK_FAILED, "no disk", NOW),
        state.reported(report.model_copy(update={"condition": CameraCondition.STALLED}), NOW),
    ):
        assert ended[0].snapshot().faults == ()


def test_a_gap_is_told_with_its_length_and_why():
    state, _, events = FRESH.recorded(segment(10, GapReason.STARTED), NOW)
    assert events == ()  # the camera's first footage ever
    state, _, events = state.recorded(segment(12), NOW)
    assert events == ()
    state, _, (gap,) = state.recorded(segment(17.5, GapReason.NETWORK), NOW)
    assert gap.kind is EventKind.FOOTAGE_GAP
    assert gap.data == {"seconds": 3.5, "reason": "network", "from": 14_000_000, "until": 17_500_000}
    assert "3.5 s" in gap.description
    _, _, (gap,) = state.recorded(segment(15, GapReason.CLOCK), NOW)
    assert "overlaps by 4.5 s" in gap.description


def test_the_first_new_footage_after_a_lost_worker_says_so():
    state, _, _ = FRESH.recorded(segment(10), NOW)
    state, salvaged, events = state.worker_lost(NOW).recorded(segment(12), NOW)
    assert (salvaged.gap, events) == (GapReason.NONE, ())
    state, first, (gap,) = state.recorded(segment(16, GapReason.STARTED), NOW)
    assert first.gap is GapReason.WORKER
    assert gap.data["reason"] == "worker"
    _, later, _ = state.recorded(segment(20, GapReason.STARTED), NOW)
    assert later.gap is GapReason.STARTED


def disk_failed(state):
    return state.failed(CameraCondition.DISK_FAILED, "there is no media folder", NOW)[0]


def disk_reported_failed(state):
    return after(state, CameraCondition.DISK_FAILED)[0]


@pytest.mark.parametrize("fails", [disk_failed, disk_reported_failed])
@pytest.mark.parametrize("told", [GapReason.STARTED, GapReason.WORKER])
@pytest.mark.parametrize("lost_first", [False, True])
def test_over_a_fault_of_the_disk_with_a_restart_in_between_the_fault_is_told(fails, told, lost_first):
    state, _, _ = FRESH.recorded(segment(10), NOW)
    state = fails(state.worker_lost(NOW)) if lost_first else fails(state).worker_lost(NOW)
    state, _, events = state.recorded(segment(12), NOW)  # what was left of the lost worker's last file
    assert events == ()
    state, first, (gap,) = state.recorded(segment(300, told), NOW)
    assert (first.gap, gap.data["reason"]) == (GapReason.DISK, "disk")
    _, later, _ = state.recorded(segment(310, told), NOW)
    assert later.gap is told


@pytest.mark.parametrize("anew", [False, True])
def test_what_a_hung_disk_takes_late_does_not_hide_why_the_rest_is_missing(anew):
    """Its last file is finished when it moves again, before or after the camera was given to its worker anew."""
    state, _, _ = FRESH.recorded(segment(10), NOW)
    state = disk_failed(state)
    if anew:
        state, _ = after(state, CameraCondition.STARTING)
    state, _, events = state.recorded(segment(12), NOW)
    assert events == ()
    state, first, (gap,) = state.recorded(segment(50, GapReason.STARTED), NOW)
    assert (first.gap, gap.data["reason"], gap.data["seconds"]) == (GapReason.DISK, "disk", 36)
    state, _ = after(state, CameraCondition.RECORDING)
    state, _, _ = state.recorded(segment(NOW.micros / 1e6 + 1), NOW)
    _, later, _ = state.recorded(segment(NOW.micros / 1e6 + 100, GapReason.STARTED), NOW)
    assert later.gap is GapReason.STARTED


def test_a_disk_that_failed_without_a_loss_is_not_to_blame_for_what_is_missing_later():
    state, _, _ = FRESH.recorded(segment(10), NOW)
    state, _ = after(disk_failed(state), CameraCondition.RECORDING)
    state, _, _ = state.recorded(segment(NOW.micros / 1e6 + 1), NOW)
    _, later, _ = state.recorded(segment(NOW.micros / 1e6 + 100, GapReason.STARTED), NOW)
    assert later.gap is GapReason.STARTED


def test_what_nobody_wanted_of_a_camera_for_events_is_not_missing_once_it_is_recorded_whole():
    state, _, _ = replace(FRESH, events_only=True).recorded(segment(10), NOW)
    state = state.recorded_whole(Stamp(micros=60_000_000, trusted=True)).connected_anew()
    _, first, (gap,) = state.recorded(segment(61, GapReason.STARTED), NOW)
    assert first.gap is GapReason.CHANGED
    assert (gap.data["from"], gap.data["until"]) == (60_000_000, 61_000_000)


def test_of_a_changed_camera_for_events_what_was_written_before_is_not_missing():
    state, _, _ = replace(FRESH, events_only=True).recorded(segment(10), NOW)
    first = segment(12.2, GapReason.STARTED).model_copy(update={"gap_from": 5_000_000})
    _, told, (gap,) = state.connected_anew().recorded(first, NOW)
    assert told.gap is GapReason.CHANGED
    assert (gap.data["from"], gap.data["until"]) == (12_000_000, 12_200_000)


def test_a_clock_that_was_set_is_no_missing_footage_and_what_is_missing_is_told_by_the_other_clock():
    def at(start, uptime, gap):
        return segment(start, gap).model_copy(update={"boot_id": "run", "monotonic": int(uptime * 1e6)})

    state, _, _ = FRESH.recorded(at(10, 100, GapReason.NONE), NOW)
    state, _, events = state.recorded(at(5000, 102, GapReason.CLOCK), NOW)
    assert events == ()
    state, _, (gap,) = state.recorded(at(9000, 110.5, GapReason.NETWORK), NOW)
    assert (gap.data["seconds"], gap.data["until"]) == (6.5, 9_000_000_000)


def wanted_since(start, since, *, boot_id="", uptime=0.0, gap=GapReason.STARTED):
    changed = {"gap_from": int(since * 1e6), "boot_id": boot_id, "monotonic": int(uptime * 1e6)}
    return segment(start, gap).model_copy(update=changed)


@pytest.mark.parametrize(
    ("written", "missing_from"),
    [
        (segment(88), 93),  # 88 to 90, of an event before: what this one wanted is gone with the worker's memory
        (segment(93.5), 95.5),
        (segment(98), None),
        (segment(98.5), None),
    ],
)
@pytest.mark.parametrize("gap", [GapReason.STARTED, GapReason.WORKER])
def test_what_events_wanted_and_a_lost_worker_took_with_it_is_a_gap(written, missing_from, gap):
    state, _, _ = replace(FRESH, events_only=True).recorded(written, NOW)
    _, told, events = state.worker_lost(NOW).recorded(wanted_since(100, 93, gap=gap), NOW)
    assert told.gap is GapReason.WORKER
    expected = [] if missing_from is None else [{"from": int(missing_from * 1e6), "until": 100_000_000}]
    assert [{name: event.data[name] for name in ("from", "until")} for event in events] == expected
    assert all(event.data["reason"] == "worker" for event in events)


@pytest.mark.parametrize("step", [-3600, 0, 3600])
def test_what_a_lost_worker_had_written_is_known_by_the_clock_that_nobody_sets(step):
    was = segment(93.5).model_copy(update={"boot_id": "run", "monotonic": 10_000_000})
    state, _, _ = replace(FRESH, events_only=True).recorded(was, NOW)
    first = wanted_since(5000 + step, 4990 + step, boot_id="run", uptime=14)
    _, _, (gap,) = state.worker_lost(NOW).recorded(first, NOW)
    assert (gap.data["seconds"], gap.data["until"]) == (2.0, (5000 + step) * 1_000_000)


def test_before_the_first_footage_ever_of_a_camera_for_events_there_is_no_gap():
    assert replace(FRESH, events_only=True).recorded(wanted_since(100, 93), NOW)[2] == ()
