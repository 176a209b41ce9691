"""Parts out of bodies in any pieces, with cameras' quirks."""

from pathlib import Path

import pytest
from held_memory import held_bytes
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.plates.multipart import LARGEST_TEXT, Part, PartSplitter
from gateway.demo.plate_stream import PICTURE, part

CAPTURES = Path(__file__).with_name("captures")
CLOSING = b"</EventNotificationAlert>"


@pytest.mark.parametrize("capture", ["hikvision-stream.bin", "hikvision-push.bin", "dahua-stream.bin"])
def test_pieces_do_not_matter(capture):
    body = (CAPTURES / capture).read_bytes()
    whole = PartSplitter(closing=CLOSING).feed(body)
    splitter = PartSplitter(closing=CLOSING)
    assert tuple(found for byte in body for found in splitter.feed(bytes([byte]))) == whole
    assert len(whole) >= 2
    assert all(found.body == b"" for found in whole if found.is_picture)


def test_part_is_known_as_soon_as_it_is_there():
    xml = b"<EventNotificationAlert>x</EventNotificationAlert>"
    assert PartSplitter(closing=CLOSING).feed(b"--b\r\nContent-Type: application/xml\r\n\r\n" + xml)[0].body == xml
    assert PartSplitter().feed(b"--b\r\nContent-Length: 9\r\n\r\nHeartbeat")[0].body == b"Heartbeat"


@pytest.mark.parametrize("length", [None, 1, 20, 4000])
def test_wrong_length_of_a_text_does_not_tear_it(length):
    xml = b"<EventNotificationAlert>0123456789</EventNotificationAlert>"
    body = part("text/xml", xml, length=length) + part("text/xml", xml)
    assert [found.body for found in PartSplitter(closing=CLOSING).feed(body)] == [xml, xml]


@pytest.mark.parametrize("length", [None, 10, 10_000])
def test_wrong_length_of_a_picture_costs_the_picture_alone(length):
    body = part("image/jpeg", PICTURE, length=length) + part("text/plain", b"A=1") + part("text/plain", b"A=2")
    texts = [found.body for found in PartSplitter().feed(body) if not found.is_picture]
    assert texts == [b"A=1", b"A=2"]


def test_boundary_may_change_and_lines_may_end_in_newlines_alone():
    body = part("text/plain", b"A=1", boundary="one") + part("text/plain", b"A=2", boundary="--two")
    assert [found.body for found in PartSplitter().feed(body.replace(b"\r\n", b"\n"))] == [b"A=1", b"A=2"]


def test_part_without_header():
    assert PartSplitter().feed(b"--b\r\n\r\nA=1\r\n--b\r\n") == (Part("", b"A=1"),)


def test_half_a_part_is_none():
    assert PartSplitter().feed(b"--b\r\nContent-Length: 30\r\n\r\nPlateNumber=AB") == ()
    assert PartSplitter().feed(b"--b\r\n\r\nPlateNumber=AB") == ()


@pytest.mark.parametrize(
    "endless",
    [
        b"junk" * 40_000,
        b"junk\n" * 40_000,
        b"--b\r\nA: " + b"x" * 5_000,
        b"--b\r\nContent-Type: text/plain\r\n\r\n" + b"x" * (LARGEST_TEXT + 10),
        b"--b\r\nContent-Type: image/jpeg\r\n\r\n" + b"x" * (9 * 1024 * 1024),
    ],
)
def test_what_has_no_end_is_refused(endless):
    with pytest.raises(ProtocolViolation):
        PartSplitter().feed(endless)


def test_pictures_are_not_held():
    splitter = PartSplitter()
    splitter.feed(b"--b\r\nContent-Type: image/jpeg\r\n\r\n")
    before = held_bytes(splitter)
    for _ in range(100):
        splitter.feed(b"x" * 10_000)
    assert held_bytes(splitter) < before + 20_000


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_are_parts_or_a_violation(noise, size):
    splitter = PartSplitter(closing=CLOSING)
    try:
        for place in range(0, len(noise), size):
            splitter.feed(noise[place : place + size])
    except ProtocolViolation:
        pass
