from drivers.rtsp.frames import Entry
from gateway.domain.footage import GapReason
from gateway.recording.clips import lead_in
from gateway.store import Segment


def footage(*entries, whole_after=0, gap_before=None):
    return [
        Segment(
            id=number, camera_id=1, path=f"{number}", started_at=number * 2_000_000, duration=2_000_000, size=1,
            clock_trusted=True, gap=GapReason.NETWORK if number == gap_before else GapReason.NONE, codec="avc1",
            width=1, height=1, entry=entry, whole_after=0 if entry is Entry.IDR else whole_after,
        )
        for number, entry in enumerate(entries)
    ]  # fmt: skip


def chosen(segments, moment):
    return [segment.id for segment in lead_in(segments[:-1], segments[-1], moment)]


def test_an_idr_and_an_open_group_need_nothing_before():
    assert chosen(footage(Entry.IDR, Entry.IDR), 2_500_000) == []
    assert chosen(footage(Entry.IDR, Entry.RECOVERY), 2_500_000) == []


def test_refreshed_pictures_are_decoded_from_where_they_are_whole_in_time():
    segments = footage(*[Entry.RECOVERY] * 4, whole_after=1_500_000)
    assert chosen(segments, 7_600_000) == []
    assert chosen(segments, 7_400_000) == [2]
    longer = footage(*[Entry.RECOVERY] * 5, whole_after=3_500_000)
    assert chosen(longer, 8_100_000) == [2, 3]


def test_what_was_cut_by_time_is_decoded_from_the_entry_point_before_it():
    assert chosen(footage(Entry.IDR, Entry.IDR, Entry.NONE, Entry.NONE), 6_100_000) == [1, 2]
    assert chosen(footage(Entry.NONE, Entry.NONE), 2_000_000) == [0], "all there is, where there is none"


def test_nothing_is_decoded_over_a_gap():
    assert chosen(footage(Entry.IDR, Entry.NONE, Entry.NONE, gap_before=1), 5_000_000) == [1]
    assert chosen(footage(Entry.IDR, Entry.NONE, gap_before=1), 2_500_000) == []
