"""Tags in frames, and how long one counts as the same reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.serial_line.profile import Tags

COUNTED = Tags(count_at=0, first=1, length="prefixed", tail=2)
TAGS = st.lists(st.binary(min_size=1, max_size=12), max_size=8)


@given(TAGS)
def test_counted_tags(tags):
    frame = bytes((len(tags),)) + b"".join(bytes((len(tag),)) + tag for tag in tags) + b"\xaa\xbb"
    assert COUNTED.of(frame) == tuple(tags)


@given(st.binary(max_size=40))
def test_any_frame_is_tags_or_a_violation(frame):
    try:
        tags = COUNTED.of(frame)
    except ProtocolViolation:
        return
    assert len(frame) == 3 + sum(1 + len(tag) for tag in tags)


def test_other_layouts():
    assert Tags(first=1, length=3, tail=1).of(b"\x02abc\x03") == (b"abc",)
    assert Tags(first=1, length="rest", tail=1).of(b"\x02abcdef\x03") == (b"abcdef",)
    with_strength = Tags(count_at=0, first=1, length="prefixed", after_each=1)
    assert with_strength.of(b"\x02\x01a\xf0\x02bc\xf1") == (b"a", b"bc")


@pytest.mark.parametrize("frame", [b"\x02ab\x03", b"\x02abcd\x03", b""])
def test_a_frame_of_another_length(frame):
    with pytest.raises(ProtocolViolation):
        Tags(first=1, length=3, tail=1).of(frame)
