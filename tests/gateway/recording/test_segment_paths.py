from __future__ import annotations

from pathlib import Path

from gateway.recording.live_hls import SegmentPaths


def test_what_was_found_is_known_for_a_while_and_bounded():
    now = [100.0]
    found = SegmentPaths(monotonic=lambda: now[0])
    assert found.get((1, 2)) is None
    assert found.note((1, 2), Path("a.ts")) == Path("a.ts")
    now[0] += 9.9
    assert found.get((1, 2)) == Path("a.ts")
    now[0] += 0.2
    assert found.get((1, 2)) is None
    for number in range(3000):
        found.note((1, number), Path(f"{number}.ts"))
    assert found.get((1, 0)) is None
    assert found.get((1, 2999)) == Path("2999.ts")
