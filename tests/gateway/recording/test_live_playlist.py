"""The live playlist keeps the rules while segments come and go, whatever their lengths and breaks."""

from __future__ import annotations

import pytest
from hls_linter import lint_media, lint_update, parse_media
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.footage import GENESIS, ChainPlace, GapReason
from gateway.recording.playlists import FEWEST_SEGMENTS, fitting, listed, live_media, live_target
from gateway.store import Segment

START = 1_767_268_800_000_000


def segment(number: int, *, started_at: int, duration: int = 2_000_000, breaks: int = 0) -> Segment:
    return Segment(
        id=number, camera_id=7, path="7/2026010112/1_2.ts", started_at=started_at, duration=duration, size=500_000,
        clock_trusted=True, gap=GapReason.NONE, codec="avc1.64001f", width=1280, height=720,
        place=ChainPlace(number, GENESIS), breaks=breaks,
    )  # fmt: skip


@st.composite
def cameras(draw) -> tuple[list[Segment], frozenset[int]]:
    """A camera's life: segments in order, some after a break; and which of them are gone before their time."""
    at, breaks, found = START, draw(st.integers(0, 9)), []
    number = draw(st.integers(1, 10**12))
    for _ in range(draw(st.integers(8, 40))):
        if draw(st.integers(0, 5)) == 0:
            breaks += 1
            at += draw(st.integers(0, 60_000_000))
        duration = draw(st.integers(200_000, 4_000_000))
        found.append(segment(number, started_at=at, duration=duration, breaks=breaks))
        number += 1
        at += duration
    gone = draw(st.frozensets(st.sampled_from([item.id for item in found]), max_size=4))
    return found, gone


@given(cameras())
def test_a_playlist_that_moves_on_keeps_the_rules(camera):
    life, gone = camera
    target = live_target(max(item.duration for item in life))
    before = ""
    for now in range(1, len(life) + 1):
        kept = [item for item in life[:now] if item.id not in gone]
        if not kept:
            continue
        text = live_media(listed(kept, target=target), target=target)
        steady = now > 40
        assert lint_media(text, steady=steady) == []
        if before:
            assert lint_update(before, text) == []
        before = text


@given(cameras())
def test_discontinuities_are_counted_as_the_camera_broke_off(camera):
    life, gone = camera
    kept = [item for item in life if item.id not in gone] or life
    read = parse_media(live_media(listed(kept, target=4), target=4))
    counted = {item.id: item.breaks for item in life}
    assert all(entry.discontinuity == counted[entry.number] for entry in read.entries if not entry.gap)


def test_it_lists_as_much_as_players_need_and_no_more():
    life = [segment(number, started_at=START + number * 2_000_000) for number in range(1, 200)]
    assert len(listed(life, target=4)) == 8
    assert len(listed(life, target=2)) == FEWEST_SEGMENTS
    assert lint_media(live_media(listed(life, target=4), target=4)) == []
    assert listed([], target=4) == ()


def test_numbers_lost_with_a_broken_store_are_not_listed_as_gaps():
    life = [segment(number, started_at=START + number * 2_000_000) for number in (1, 2, 1_000_003, 1_000_004)]
    assert [item.id for item in listed(life, target=4)] == [1_000_003, 1_000_004]


@pytest.mark.parametrize(
    ("longest", "target"), [(0, 2), (1_500_000, 2), (2_499_999, 2), (2_500_000, 3), (4_000_000, 4), (12_100_000, 12)]
)
def test_the_target_is_no_longer_than_the_longest_segment_ever(longest, target):
    assert live_target(longest) == target
    assert fitting([segment(1, started_at=START, duration=longest or 1)], target=target)
