"""Playlists keep the rules of HLS, whatever the footage."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise

from hls_linter import lint_master
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.footage import GapReason
from gateway.recording import playlists
from gateway.store import Segment

CODECS = (("avc1.64001f", 1280, 720), ("avc1.42c01e", 640, 360), ("", 0, 0))


def segment(**fields) -> Segment:
    given = {
        "id": 1, "camera_id": 7, "path": "7/2026010112/1_2.ts", "started_at": 1_767_268_800_000_000,
        "duration": 2_000_000, "size": 500_000, "clock_trusted": True, "gap": GapReason.NONE,
        "codec": "avc1.64001f", "width": 1280, "height": 720,
    }  # fmt: skip
    return Segment(**(given | fields))


@st.composite
def footages(draw) -> tuple[Segment, ...]:
    at = draw(st.integers(0, 4_000_000_000_000_000))
    found = []
    for number in range(draw(st.integers(1, 30))):
        gap = draw(st.sampled_from([GapReason.NONE, GapReason.NONE, GapReason.NETWORK]))
        at += draw(st.integers(1, 10**10)) if gap is not GapReason.NONE else 0
        codec, width, height = draw(st.sampled_from(CODECS))
        duration = draw(st.integers(1, 119_000_000))
        found.append(
            segment(
                id=number + 1, started_at=at, duration=duration, size=draw(st.integers(188, 10**8)), gap=gap,
                codec=codec, width=width, height=height,
            )
        )  # fmt: skip
        at += duration
    return tuple(found)


def check_media(text: str, footage: tuple[Segment, ...], *, complete: bool) -> None:
    """The rules of RFC 8216 that a playlist of finished segments must keep."""
    lines = text.splitlines()
    assert text.endswith("\n")
    assert lines[0] == "#EXTM3U"
    for once in ("VERSION", "TARGETDURATION", "MEDIA-SEQUENCE", "PLAYLIST-TYPE", "INDEPENDENT-SEGMENTS"):
        assert sum(line.startswith(f"#EXT-X-{once}") for line in lines) == 1
    (target,) = (int(line.partition(":")[2]) for line in lines if line.startswith("#EXT-X-TARGETDURATION"))
    durations = [line for line in lines if line.startswith("#EXTINF:")]
    for line in durations:
        assert re.fullmatch(r"#EXTINF:\d+\.\d{6},", line)
        assert int(float(line[8:-1]) + 0.5) <= target
    assert [line for line in lines if line.endswith(".ts")] == [f"{segment.id}.ts" for segment in footage]
    assert len(durations) == len(footage)
    assert (lines[-1] == "#EXT-X-ENDLIST") is complete
    assert ("#EXT-X-PLAYLIST-TYPE:VOD" in lines) is complete
    dates = [line.partition(":")[2] for line in lines if line.startswith("#EXT-X-PROGRAM-DATE-TIME:")]
    assert all(datetime.fromisoformat(date).tzinfo is not None for date in dates)
    breaks = [at for at, line in enumerate(lines) if line == "#EXT-X-DISCONTINUITY"]
    assert all(lines[at + 1].startswith("#EXT-X-PROGRAM-DATE-TIME:") for at in breaks)
    assert len(dates) == len(breaks) + 1
    parts = " ".join(lines).split("#EXT-X-DISCONTINUITY")
    by_id = {f"{segment.id}.ts": segment for segment in footage}
    for part in parts:
        run = [by_id[word] for word in part.split() if word.endswith(".ts")]
        assert len({(item.codec, item.width, item.height) for item in run}) == 1
        assert all(item.gap is GapReason.NONE for item in run[1:])


@given(footages(), st.booleans())
def test_media_playlists_keep_the_rules(footage, complete):
    check_media(playlists.media(footage, complete=complete), footage, complete=complete)


@given(footages())
def test_a_growing_playlist_is_only_added_to(footage):
    """Up to the first segment longer than the target duration, which none of ours is."""
    short = tuple(item for item in footage if item.duration < 10_000_000)
    texts = [playlists.media(short[:count], complete=False) for count in range(1, len(short) + 1)]
    for before, after in pairwise(texts):
        assert after.startswith(before)
    if short:
        assert playlists.media(short, complete=True).splitlines()[6:-1] == texts[-1].splitlines()[6:]


@given(footages())
def test_master_playlists_name_rates_and_formats(footage):
    text = playlists.master(footage)
    (line,) = (line for line in text.splitlines() if line.startswith("#EXT-X-STREAM-INF:"))
    attributes = dict(re.findall(r'([A-Z-]+)=("[^"]*"|[^,]+)', line.partition(":")[2]))
    assert int(attributes["BANDWIDTH"]) > 0
    assert int(attributes["AVERAGE-BANDWIDTH"]) > 0
    known = {item.codec for item in footage if item.codec}
    assert ("CODECS" in attributes) is bool(known)
    assert set(attributes.get("CODECS", '""').strip('"').split(",")) - {""} == known
    assert text.splitlines()[-1] == "index.m3u8"


def test_sound_is_named_beside_the_pictures_and_its_coming_is_a_discontinuity():
    silent = segment()
    heard = segment(id=2, started_at=silent.ended_at, codec="avc1.64001f,mp4a.40.2")
    assert 'CODECS="avc1.64001f,mp4a.40.2"' in playlists.master((silent, heard))
    assert "#EXT-X-DISCONTINUITY" in playlists.media((silent, heard), complete=True)


def test_a_tiny_segment_does_not_make_a_peak():
    footage = (segment(size=1_250_000, duration=5_000_000), segment(id=2, size=60_000, duration=40_000))
    assert playlists.peak_bits_per_second(footage, target=10) == 2_079_366
    assert playlists.peak_bits_per_second(footage[1:], target=10) == 12_000_000  # nothing else to go by


def test_a_gap_in_time_breaks_the_playlist_even_when_nobody_told_of_it():
    first = segment()
    late = segment(id=2, started_at=first.ended_at + 60_000)
    assert playlists.continues(first, segment(id=2, started_at=first.ended_at))
    assert not playlists.continues(first, late)


def test_a_variant_whose_pictures_changed_names_every_codec_and_keeps_the_rules():
    footage = (
        segment(frames=50),
        segment(id=2, codec="avc1.42c01e", width=640, height=360, frames=50, started_at=1_767_268_802_000_000),
    )
    text = playlists.master(footage)
    assert 'CODECS="avc1.42c01e,avc1.64001f"' in text
    assert lint_master(text) == []
