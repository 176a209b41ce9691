"""Holes in footage: where, how long and why."""

import pytest

from gateway.domain.footage import Edge, GapReason, Missing, missing_between

S = 1_000_000
FORM = ("avc1", 640, 360)


def edge(start, end, gap=GapReason.NONE):
    return Edge(round(start * S), round(end * S), gap, FORM)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([edge(-1, 5), edge(5.2, 11)], []),
        ([edge(-1, 5), edge(5.2, 11, GapReason.NETWORK)], [(5, 5.2, GapReason.NETWORK)]),
        ([edge(-1, 5), edge(7, 11, GapReason.CAMERA)], [(5, 7, GapReason.CAMERA)]),
        ([edge(2, 11, GapReason.DISK)], [(0, 2, GapReason.DISK)]),
        ([edge(-1, 8)], [(8, 10, GapReason.WORKER)]),
        ([edge(-1, 6), edge(4, 5), edge(6, 12)], []),
        ([], [(0, 10, GapReason.WORKER)]),
    ],
)
def test_what_is_not_there_is_told(edges, expected):
    found = missing_between(edges, 0, 10 * S, after=GapReason.WORKER)
    assert found == [Missing(round(begin * S), round(end * S), why) for begin, end, why in expected]
