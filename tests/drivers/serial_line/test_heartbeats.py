"""Texts between a reader's lines: heartbeats, and begins of lines, which are never taken for one."""

from __future__ import annotations

import pytest

from drivers.serial_line.card_lines import alphabet
from drivers.serial_line.heartbeats import Heartbeats

TEXT = b"www.usr.cn"


def read(heartbeats, *lines):
    for line in lines:
        heartbeats.line_read(line)
    return heartbeats


def test_a_text_is_the_begin_of_a_line_as_long_as_nothing_is_known():
    assert not Heartbeats().is_foreign(TEXT)


def test_the_heartbeat_of_the_site_file_is_known_at_once_alone_and_before_a_card():
    heartbeats = Heartbeats(named=TEXT)
    assert heartbeats.is_foreign(TEXT)
    assert heartbeats.is_foreign(TEXT + TEXT)
    assert heartbeats.came_alone(TEXT)
    assert heartbeats.without(TEXT + TEXT + b"11572") == b"11572"
    assert heartbeats.without(TEXT) == TEXT


@pytest.mark.parametrize(
    ("form", "begin"), [("hex", b"04:a1"), ("decimal", b"\x02001"), ("wiegand26", b"077,"), ("wiegand26", b"ID0")]
)
def test_what_a_form_cannot_have_is_foreign_and_its_begins_are_not(form, begin):
    heartbeats = Heartbeats(alphabet=alphabet(form, prefix="ID"))
    assert heartbeats.is_foreign(TEXT)
    assert not heartbeats.is_foreign(begin)


def test_kinds_of_characters_that_no_card_has_had_are_foreign():
    heartbeats = read(Heartbeats(), b"GOOD1", b"GOOD2")
    assert heartbeats.is_foreign(TEXT)
    assert not heartbeats.is_foreign(b"GOO")
    assert not read(Heartbeats(), b"a.b-1", b"c.d-2").is_foreign(TEXT)


def test_a_text_that_comes_twice_by_itself_is_a_heartbeat_where_cards_are_read():
    heartbeats = read(Heartbeats(), b"1")
    assert [heartbeats.came_alone(TEXT) for _ in range(3)] == [False, True, True]
    assert heartbeats.is_foreign(TEXT)


def test_one_that_looks_like_a_card_spoils_no_card_but_is_told():
    heartbeats = read(Heartbeats(), b"1")
    assert [heartbeats.came_alone(b"867725031234567") for _ in range(3)] == [False, False, False]
    assert heartbeats.is_foreign(b"867725031234567")
    assert not heartbeats.is_foreign(b"86772503123")


def test_what_a_reader_of_another_speed_sends_is_told_and_mere_noise_is_not():
    heartbeats = read(Heartbeats(), b"1")
    assert not any(heartbeats.came_alone(b"\x9d\x8a\xf1\x1b3\x9c") for _ in range(3))
    assert heartbeats.came_alone(b"\xff\x00\xfe")


def test_without_any_card_the_reader_itself_may_send_other_line_ends():
    heartbeats = Heartbeats()
    assert [heartbeats.came_alone(b"CARD-7") for _ in range(3)] == [False, False, False]


def test_the_begin_of_a_card_is_no_heartbeat_however_often_it_was_torn():
    heartbeats = read(Heartbeats(), b"9911572")
    for _ in range(3):
        heartbeats.came_alone(b"99")
    read(heartbeats, b"9911572")
    assert not heartbeats.is_foreign(b"99")


def test_many_texts_take_no_memory():
    heartbeats = read(Heartbeats(), b"1")
    for number in range(1000):
        heartbeats.came_alone(str(number).encode())
    assert not heartbeats.came_alone(b"0")
