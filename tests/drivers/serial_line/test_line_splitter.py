"""Lines out of bytes in any pieces."""

from __future__ import annotations

import itertools

import pytest
from held_memory import held_bytes
from hypothesis import given
from hypothesis import strategies as st

from drivers.serial_line.splitter import LineSplitter

TERMINATORS = st.sampled_from([b"\r\n", b"\r", b"\n", b"\x03"])
LINES = st.lists(st.binary(max_size=20).map(lambda line: line.translate(None, b"\r\n\x03")), max_size=8)


def pieces_of(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


@given(TERMINATORS, LINES, st.lists(st.integers(0, 200), max_size=12))
def test_pieces_do_not_matter(terminator, lines, cuts):
    stream = b"".join(line + terminator for line in lines)
    splitter = LineSplitter(terminator=terminator)
    got = [line for piece in pieces_of(stream, cuts) for line in splitter.feed(piece)]
    assert got == [line for line in lines if line]
    assert not splitter.is_pending


@given(TERMINATORS, st.binary(max_size=600), st.lists(st.integers(0, 600), max_size=20))
def test_no_stream_makes_a_line_too_long_or_depends_on_its_pieces(terminator, stream, cuts):
    whole, split = LineSplitter(terminator=terminator, longest=30), LineSplitter(terminator=terminator, longest=30)
    expected = list(whole.feed(stream))
    got = [line for piece in pieces_of(stream, cuts) for line in split.feed(piece)]
    assert got == expected
    assert split.dropped == whole.dropped
    assert all(0 < len(line) <= 30 for line in got)


def test_an_endless_line_takes_no_memory_and_is_dropped_whole():
    splitter = LineSplitter(terminator=b"\r\n", longest=10)
    before = held_bytes(splitter)
    for _ in range(1000):
        assert splitter.feed(b"x" * 100) == ()
        assert held_bytes(splitter) < before + 300
    assert splitter.feed(b"tail\r\n12345\r\n") == (b"12345",)
    assert splitter.dropped == 1


def test_the_begin_of_a_line_is_dropped_after_silence_and_never_taken_for_a_card():
    splitter = LineSplitter(terminator=b"\r\n")
    assert splitter.feed(b"123") == ()
    assert splitter.is_pending
    assert splitter.end_of_silence() == ()
    assert not splitter.is_pending
    assert (splitter.dropped, splitter.last_dropped) == (1, b"123")
    assert splitter.end_of_silence() == ()
    assert splitter.dropped == 1


def test_a_line_that_pauses_is_one_line():
    splitter = LineSplitter(terminator=b"\r\n")
    assert splitter.feed(b"123") == ()
    assert splitter.feed(b"45\r\n") == (b"12345",)


def test_a_terminator_is_needed():
    with pytest.raises(ValueError, match="terminator"):
        LineSplitter(terminator=b"")


@pytest.mark.parametrize("pieces", [[b"572\r\n11572\r\n"], [b"5", b"72\r", b"\n115", b"72\r\n"], [b"\r\n11572\r\n"]])
def test_after_a_torn_line_only_what_follows_its_end_counts(pieces):
    splitter = LineSplitter(terminator=b"\r\n", torn=True)
    assert splitter.is_mid_message
    assert [line for piece in pieces for line in splitter.feed(piece)] == [b"11572"]
    assert not splitter.is_mid_message


def test_a_torn_line_ends_with_a_long_silence_so_that_the_first_card_counts():
    splitter = LineSplitter(terminator=b"\r\n", cut=True)
    splitter.feed(b"5")
    splitter.pause()
    assert splitter.is_mid_message
    splitter.end_of_silence()
    assert not splitter.is_mid_message
    assert splitter.feed(b"11572\r\n") == (b"11572",)


def is_heartbeat(text):
    return text == b"www.usr.cn"


def test_a_heartbeat_before_a_line_is_no_part_of_it():
    splitter = LineSplitter(terminator=b"\r\n", is_foreign=is_heartbeat)
    assert splitter.feed(b"www.usr.cn") == ()
    assert splitter.pause() == ()
    assert splitter.last_dropped == b"www.usr.cn"
    assert splitter.feed(b"11572\r\n") == (b"11572",)


@pytest.mark.parametrize(("cut", "lines"), [(False, (b"11572",)), (True, ())])
def test_a_heartbeat_at_the_opening_shows_no_begin_of_a_line_that_was_cut_before(cut, lines):
    splitter = LineSplitter(terminator=b"\r\n", torn=True, cut=cut, is_foreign=is_heartbeat)
    splitter.feed(b"www.usr.cn")
    splitter.pause()
    assert splitter.feed(b"11572\r\n") == lines


def test_a_line_that_pauses_twice_is_one_line():
    splitter = LineSplitter(terminator=b"\r\n", is_foreign=is_heartbeat)
    for piece in (b"99", b"115"):
        assert splitter.feed(piece) == ()
        assert splitter.pause() == ()
    assert splitter.feed(b"72\r\n") == (b"9911572",)


@pytest.mark.parametrize(
    ("sent", "lines"),
    [
        (b"11572\n", (b"11572",)),
        (b"11572\r", (b"11572",)),
        (b"1\n2\n", (b"1", b"2")),
        (b"1\n\r2\n\r", (b"1", b"2")),
        (b"1\x001\x005\x007\x002\x00\r\x00\n\x00", (b"11572",)),  # UTF-16
        (bytes(byte | 0x80 * (byte.bit_count() % 2) for byte in b"11572\r\n"), (b"11572",)),  # seven bits, even parity
        (bytes(byte | 0x80 * (1 - byte.bit_count() % 2) for byte in b"11572\r\n"), (b"11572",)),  # odd parity
        (b"11572", ()),
    ],
)
def test_other_line_ends_count_where_silence_follows(sent, lines):
    splitter = LineSplitter(terminator=b"\r\n")
    assert splitter.feed(sent) == ()
    assert splitter.pause() == lines


def test_a_wrong_byte_inside_a_line_does_not_make_two_of_it():
    splitter = LineSplitter(terminator=b"\r\n")
    assert splitter.feed(b"99\r11572\r\n") == (b"99\r11572",)
    splitter.feed(b"99\r11572\n")
    assert splitter.pause() == (b"99\r11572\n",)


def test_the_rest_of_a_line_end_that_comes_late_belongs_to_no_line():
    splitter = LineSplitter(terminator=b"\r\n")
    splitter.feed(b"11572\r")
    assert splitter.pause() == (b"11572",)
    assert splitter.feed(b"\n") == ()
    assert not splitter.is_pending
    assert splitter.feed(b"11573\r\n") == (b"11573",)


def test_a_terminator_of_one_character_is_taken_as_given():
    splitter = LineSplitter(terminator=b"\r")
    assert splitter.feed(b"11572\n") == ()
    assert splitter.pause() == ()


def test_a_torn_line_without_end_is_not_kept():
    splitter = LineSplitter(terminator=b"\r\n", torn=True)
    for _ in range(100):
        assert splitter.feed(b"x" * 1000) == ()
    assert splitter.feed(b"\r\n11572\r\n") == (b"11572",)
