"""Footage that is held in memory until an event pins it."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.camera_worker.pre_roll import PreRoll
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.footage import GapReason, Pin
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000
SECOND = 1_000_000


class Held:
    """A camera whose footage is held; `push(seconds)` lets time go on."""

    def __init__(self, media, encoded, *, seconds=10.0, **more):
        self.media = media
        self.told = []
        self.pre_roll = PreRoll(media=media, seconds=seconds, finished=self.told.append, **more)
        self.segmenter = Segmenter(camera_id=3, media=media, segment_seconds=1.0, shelf=self.pre_roll)
        self._frames = encoded(1)
        self._pushed = 0
        self.stepped = 0

    def push(self, seconds):
        for _ in range(int(seconds * 10)):
            frame = self._frames[self._pushed % 10]
            ticks = self._pushed * 9_000
            self.segmenter.push(
                replace(frame, pts=ticks, dts=ticks, arrived=100 + self._pushed / 10),
                Stamp(START + self.stepped + self._pushed * SECOND // 10, trusted=True),
            )
            self._pushed += 1

    def later(self, seconds):
        self._pushed += seconds * 10

    def pin_by_uptime(self, begin, until, *, offset):
        span = (100 * SECOND + offset + int(second * SECOND) for second in (begin, until))
        self.pre_roll.pin((Pin(camera_id=3, begin=next(span), until=next(span), clock_offset=offset),))

    def pin(self, *spans):
        self.pre_roll.pin(
            tuple(
                Pin(camera_id=3, begin=START + int(begin * SECOND), until=START + int(until * SECOND))
                for begin, until in spans
            )
        )

    def seconds(self):
        return [(segment.started_at - START) / SECOND for segment in self.told]

    def files(self):
        return sorted(self.media.rglob("*.*"))


@pytest.fixture
def held(tmp_path, encoded):
    return Held(tmp_path, encoded)


def test_nothing_touches_the_disk_before_an_event(held):
    held.push(30)
    assert held.files() == []
    assert held.told == []
    assert 0 < held.pre_roll.buffered_bytes < 500_000


@pytest.mark.long("ffmpeg")
def test_an_event_gets_what_was_before_it_and_what_comes_until_its_end(held, judge):
    held.push(20.5)
    held.pin((17.2, 23.5))
    assert held.seconds() == [17, 18, 19]
    assert [file.suffix for file in held.files()] == [".ts"] * 3 + [".part"], (
        "the open one goes to the disk as it comes"
    )
    held.push(10)
    assert held.seconds() == [17, 18, 19, 20, 21, 22, 23]
    assert len(held.files()) == 7
    assert [segment.gap for segment in held.told] == [GapReason.NO_EVENT] + [GapReason.NONE] * 6
    assert all(a.started_at + a.duration == b.started_at for a, b in pairwise(held.told))
    for segment, file in zip(held.told, held.files(), strict=True):
        assert (file.stat().st_size, judge.decode(file)) == (segment.size, "")
    import hashlib

    assert [segment.sha256 for segment in held.told] == [
        hashlib.sha256((held.media / segment.path).read_bytes()).hexdigest() for segment in held.told
    ]


def test_overlapping_events_share_segments_and_a_later_one_begins_anew(held):
    held.push(10.5)
    held.pin((6, 8), (7, 12))
    held.push(5)
    held.pin((6, 8), (7, 12), (18, 19))
    held.push(10)
    assert held.seconds() == [6, 7, 8, 9, 10, 11, 18]
    assert [segment.gap for segment in held.told].count(GapReason.NO_EVENT) == 2


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_during_an_event_changes_nothing_of_what_is_written(held, hours):
    held.push(5.5)
    held.pin_by_uptime(3, 9, offset=START)
    held.stepped = hours * 3600 * SECOND
    held.push(9)
    assert [(segment.monotonic - 100 * SECOND) / SECOND for segment in held.told] == [3, 4, 5, 6, 7, 8]
    assert GapReason.NO_EVENT not in {segment.gap for segment in held.told[1:]}


def test_memory_is_bounded_by_seconds_and_by_bytes(tmp_path, encoded):
    held = Held(tmp_path / "a", encoded, seconds=5)
    (tmp_path / "a").mkdir()
    held.push(20.1)
    held.pin((0, 20))
    assert held.seconds() == [14, 15, 16, 17, 18, 19]
    few = Held(tmp_path / "a", encoded, seconds=500, most_bytes=held.told[0].size * 3)
    few.push(20)
    assert few.pre_roll.buffered_bytes <= held.told[0].size * 3


def test_what_a_full_disk_refused_is_still_in_memory(tmp_path, encoded):
    held = Held(tmp_path / "unmounted", encoded)
    held.push(5.5)
    held.pin((2, 9))
    assert held.pre_roll.fault is not None
    assert held.told == []
    (tmp_path / "unmounted").mkdir()
    held.push(3)
    held.pre_roll.retry()
    held.push(3)
    assert held.pre_roll.fault is None
    assert held.seconds() == [2, 3, 4, 5, 6, 7, 8]
    assert [segment.gap for segment in held.told] == [GapReason.NO_EVENT] + [GapReason.NONE] * 6


def is_open_in(folder, descriptor):
    """Tell whether this descriptor of the process, as the system lists it, is of a file in the folder."""
    try:
        return folder in descriptor.readlink().parents
    except FileNotFoundError:  # closed meanwhile
        return False


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("told", [False, True])
def test_a_disk_that_is_away_for_a_while_costs_no_frame(held, judge, told):
    held.push(3.5)
    held.pin((1, 9))
    held.push(1)
    elsewhere = held.media.with_name("elsewhere")
    if told:
        held.pre_roll.allow(False)
        held.media.rename(elsewhere)
    else:
        held.media.rename(elsewhere)
        with Path("/dev/null").open("rb") as closed:  # takes no data, as a disk that failed
            (descriptor,) = (int(one.name) for one in Path("/proc/self/fd").iterdir() if is_open_in(elsewhere, one))
            os.dup2(closed.fileno(), descriptor)
    held.push(20)
    assert (held.pre_roll.fault is None) is told
    elsewhere.rename(held.media)
    held.pre_roll.allow(True) if told else held.pre_roll.retry()
    assert held.seconds() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [segment.frames for segment in held.told] == [10] * 8
    assert [file.suffix for file in held.files()] == [".ts"] * 8
    assert all(judge.decode(file) == "" for file in held.files())


def test_what_was_pinned_and_had_no_room_left_is_said_to_be_missing(tmp_path, encoded):
    held = Held(tmp_path / "unmounted", encoded, seconds=500, most_bytes=60_000)
    held.push(2)
    held.pin((0, 100))
    held.push(40)
    (tmp_path / "unmounted").mkdir()
    held.pre_roll.retry()
    assert held.told[0].started_at > START
    assert {segment.gap for segment in held.told[:1]} == {GapReason.DISK}
    assert {segment.gap for segment in held.told[1:]} == {GapReason.NONE}


def test_the_worker_says_how_long_an_events_only_camera_was_away(held):
    held.pin((0, 100))
    held.push(2)
    held.segmenter.disconnect(GapReason.NETWORK)
    held.later(3)
    held.push(2)
    gap = next(segment for segment in held.told if segment.gap is GapReason.NETWORK)
    assert gap.gap_from == gap.started_at - 3 * SECOND


def test_the_end_of_a_connection_is_the_end_of_the_open_segment(held):
    held.pin((0, 100))
    held.push(2.5)
    held.segmenter.disconnect(GapReason.CAMERA)
    assert [segment.duration for segment in held.told] == [SECOND, SECOND, SECOND // 2]
    assert not list(held.media.rglob("*.part"))


@pytest.mark.parametrize(
    ("spans", "since"),
    [
        ([(-7, 3)], -7),
        ([(-20, -6), (-6, -1), (-3, 3)], -20),  # one after the other
        ([(-20, -9), (-7, 3)], -7),  # nobody wanted what was between
        ([(0, 3)], None),
        ([(0.05, 3)], None),
    ],
)
def test_the_first_footage_of_all_says_since_when_events_want_what_was_before(held, spans, since):
    held.push(5)
    held.pin(*spans)
    first, *others = held.told
    assert first.gap is GapReason.STARTED
    assert first.gap_from == (None if since is None else START + since * SECOND)
    assert {other.gap_from for other in others} == {None}


def test_since_when_is_told_by_the_clock_of_the_footage(held):
    held.push(5)
    held.pin_by_uptime(-7, 3, offset=START + 3600 * SECOND)
    assert held.told[0].gap_from == START - 7 * SECOND


def test_later_footage_misses_nothing_though_no_event_was_before(held):
    held.push(30)
    held.pin((25, 28))
    assert held.told[0].gap is GapReason.NO_EVENT
    assert held.told[0].gap_from is None
