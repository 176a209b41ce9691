"""Footage of an event's clip from a camera that changed the codec, and the report of the rest."""

import pytest

from gateway.domain.footage import Edge, GapReason, Missing, left_out, of_clip

S = 1_000_000


def edges(names):
    """Segments of two seconds each, the first from -1 s on: `4`: H.264, `5`: H.265, `?`: not known, ` `: none."""
    codecs = {"4": "avc1.4d400c", "s": "avc1.64001f,mp4a.40.2", "5": "hvc1.1.6.L60.90", "?": ""}
    begins = [(name, (2 * at - 1) * S) for at, name in enumerate(names)]
    return [Edge(at, at + 2 * S, GapReason.NONE, (codecs[name], 640, 360)) for name, at in begins if name in codecs]


@pytest.mark.parametrize(
    ("names", "held", "told"),
    [
        ("44444", "44444", []),
        ("44s44", "44s44", []),
        ("44455", "444", [(5, 9)]),
        ("45555", "5555", [(0, 1)]),
        ("44554", "444", [(3, 7)]),
        ("54545", "555", [(1, 3), (5, 7)]),
        ("5 444", "444", [(0, 1)]),
        ("4?555", "555", [(0, 3)]),
        ("??555", "??555", []),
        ("4455", "55", [(0, 3)]),
        ("5544 ", "44", [(0, 3)]),
        ("", "", []),
    ],
)
def test_a_clip_is_in_the_codec_of_most_of_its_time_and_the_rest_is_told(names, held, told):
    footage = edges(names)
    kept = [name for name, is_held in zip(names.replace(" ", ""), of_clip(footage, 0, 9 * S), strict=True) if is_held]
    assert "".join(kept) == held
    found = left_out(footage, 0, 9 * S)
    assert found == [Missing(begin * S, end * S, GapReason.CODEC) for begin, end in told]


def test_only_what_is_in_the_clips_time_counts():
    assert of_clip(edges("4455"), 0, 4 * S) == [True, True, False, False]
    assert left_out(edges("4455"), 0, 3 * S) == []
