"""Texts between a reader's lines: heartbeats, and begins of lines, which are never taken for one."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from drivers.serial_line.card_lines import Form, alphabet, has_its_begin
from drivers.serial_line.reader import Heartbeats
from drivers.serial_line.splitter import NOISE, LineSplitter

TEXT = b"www.usr.cn"
FORMS = ("text", "hex", "decimal", "wiegand26")


def heartbeats_of(form="text", *, named=b"", prefix=""):
    heartbeats = Heartbeats(named=named, alphabet=alphabet(form, prefix=prefix))
    heartbeats.card_read()
    return heartbeats


def test_the_heartbeat_of_the_site_file_is_known_at_once_alone_and_before_a_card():
    heartbeats = heartbeats_of(named=TEXT)
    assert heartbeats.is_foreign(TEXT)
    assert heartbeats.is_foreign(TEXT + TEXT)
    assert not heartbeats.is_foreign(b"99" + TEXT)
    assert heartbeats.is_told(TEXT)
    assert heartbeats.without(TEXT + TEXT + b"11572") == b"11572"
    assert heartbeats.without(TEXT) == TEXT


@pytest.mark.parametrize(
    ("form", "begin"), [("hex", b"04:a1"), ("decimal", b"\x02001"), ("wiegand26", b"077,"), ("wiegand26", b"ID0")]
)
def test_what_a_form_cannot_have_is_foreign_and_its_begins_are_not(form, begin):
    heartbeats = heartbeats_of(form, prefix="ID")
    assert heartbeats.is_foreign(b"+++ZW+++")
    assert not heartbeats.is_foreign(begin)


@pytest.mark.parametrize("form", FORMS)
def test_the_second_half_of_a_line_is_never_a_card_whatever_came_before(form):
    begins = (b"99", b"AB", b"F-", b"x", b"a.b-9", b"99\xb1", b"9y", b"99HEART", b"\xf1\x8a\x9d\xb3")
    for begin, came_before in product(begins, (0, 10)):
        heartbeats = heartbeats_of(form)
        splitter = LineSplitter(terminator=b"\r\n", is_foreign=heartbeats.is_foreign)
        assert splitter.feed(b"77001\r\n77002\r\n") == (b"77001", b"77002")
        for _ in range(came_before):
            splitter.feed(begin)
            splitter.pause()
            splitter.end_of_silence()
            heartbeats.is_told(begin)
        splitter.feed(begin)
        splitter.pause()
        rest = splitter.feed(b"12345\r\n")
        was_given_up = came_before and begin.strip(NOISE)
        assert rest == (() if was_given_up else (begin + b"12345",)), (begin, came_before)


def lines_behind(begin: bytes, sent: bytes, *, form: Form = "text", prefix: str = "") -> list[bytes]:
    """Return the lines that count when a line was given up after its begin, and these bytes come."""
    heartbeats = heartbeats_of(form, prefix=prefix, named=TEXT)
    splitter = LineSplitter(
        terminator=b"\r\n",
        is_foreign=heartbeats.is_foreign,
        is_whole=partial(has_its_begin, form=form, prefix=prefix),
    )
    lines = list(splitter.feed(begin))
    lines += splitter.pause()
    splitter.end_of_silence()
    splitter.end_of_silence()
    assert splitter.feed(sent[:2]) == ()
    assert splitter.pause() == ()
    return [*lines, *splitter.feed(sent[2:]), *splitter.pause()]


@pytest.mark.parametrize("ends", [b"\r\n", b"\r"])
def test_the_rest_of_a_line_is_no_card_however_late_it_comes_and_the_next_line_is(ends):
    assert lines_behind(b"99115", b"72001" + ends) == []
    assert lines_behind(b"99115", b"72001\r\n88\r\n") == [b"88"]
    assert lines_behind(b"y" * 300, b"72001" + ends) == []


@pytest.mark.parametrize(
    ("form", "prefix", "sent"),
    [("hex", "", b"\x020A0060E3A128"), ("text", "ID", b"ID 72001"), ("wiegand26", "", b"077,12345")],
)
def test_a_line_that_shows_its_begin_counts_behind_one_that_was_given_up(form, prefix, sent):
    assert lines_behind(b"07", sent + b"\r\n", form=form, prefix=prefix) == [sent]


@pytest.mark.parametrize("nothing", [b"\xff\x00", TEXT, b"\x02"])
def test_noise_and_heartbeats_begin_no_line(nothing):
    (line,) = lines_behind(nothing, b"72001\r\n")
    assert line.endswith(b"72001")


def test_a_heartbeat_that_is_one_for_certain_is_told_once():
    heartbeats = heartbeats_of("decimal")
    assert [heartbeats.is_told(TEXT) for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize("text", [b"867725031234567", b"HEARTBEAT", b"\x9d\x8a\xf1\x1b3\x9c"])
def test_what_may_be_a_message_of_the_reader_is_told_each_time(text):
    heartbeats = heartbeats_of()
    assert not any(heartbeats.is_told(text) for _ in range(3))


def test_mere_noise_is_not_told():
    assert heartbeats_of().is_told(b"\xff\x00\xfe")


def test_without_any_card_the_reader_itself_may_send_other_line_ends():
    heartbeats = Heartbeats(alphabet=alphabet("decimal"))
    assert [heartbeats.is_told(TEXT) for _ in range(3)] == [False, False, False]


def test_many_texts_take_no_memory():
    heartbeats = heartbeats_of("decimal")
    texts = [bytes(65 + int(digit) for digit in f"{number:04d}") for number in range(1000)]
    for text in texts:
        heartbeats.is_told(text)
    assert not heartbeats.is_told(texts[0])
