"""Texts between a reader's lines: heartbeats, and begins of lines, which are never taken for one."""

from __future__ import annotations

import pytest

from drivers.serial_line.card_lines import alphabet
from drivers.serial_line.heartbeats import Heartbeats
from drivers.serial_line.line_splitter import LineSplitter

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
@pytest.mark.parametrize(
    "begin", [b"99", b"AB", b"F-", b"x", b"a.b-9", b"99\xb1", b"9y", b"99HEART", b"\xf1\x8a\x9d\xb3"]
)
@pytest.mark.parametrize("came_before", [0, 10])
def test_the_second_half_of_a_line_is_never_a_card_whatever_came_before(form, begin, came_before):
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
    assert splitter.feed(b"12345\r\n") == (begin + b"12345",)


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
