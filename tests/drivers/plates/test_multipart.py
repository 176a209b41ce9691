"""Parts out of bodies in any pieces, with cameras' quirks."""

import time
from pathlib import Path

import pytest
from held_memory import held_bytes
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.plates.multipart import LARGEST_TEXT, BodyPart, PartSplitter
from simulation.far_ends.plate_stream import PICTURE, part

CAPTURES = Path(__file__).with_name("captures")
ELEMENT = b"EventNotificationAlert"


@pytest.mark.parametrize("capture", ["hikvision-stream.bin", "hikvision-push.bin", "dahua-stream.bin"])
def test_pieces_do_not_matter(capture):
    body = (CAPTURES / capture).read_bytes()
    whole = PartSplitter(element=ELEMENT).feed(body)
    splitter = PartSplitter(element=ELEMENT)
    assert tuple(found for byte in body for found in splitter.feed(bytes([byte]))) == whole
    assert len(whole) >= 2
    assert all(found.body == b"" for found in whole if found.is_picture)


def test_part_is_known_as_soon_as_it_is_there():
    xml = b"<EventNotificationAlert>x</EventNotificationAlert>"
    assert PartSplitter(element=ELEMENT).feed(b"--b\r\nContent-Type: application/xml\r\n\r\n" + xml)[0].body == xml
    assert PartSplitter().feed(b"--b\r\nContent-Length: 9\r\n\r\nHeartbeat")[0].body == b"Heartbeat"


@pytest.mark.parametrize("length", [None, 1, 20, 4000])
def test_wrong_length_of_a_text_does_not_tear_it(length):
    xml = b"<EventNotificationAlert>0123456789</EventNotificationAlert>"
    body = part("text/xml", xml, length=length) + part("text/xml", xml)
    assert [found.body for found in PartSplitter(element=ELEMENT).feed(body)] == [xml, xml]


@pytest.mark.parametrize("length", [None, 10, 10_000])
def test_wrong_length_of_a_picture_costs_the_picture_alone(length):
    body = part("image/jpeg", PICTURE, length=length) + part("text/plain", b"A=1") + part("text/plain", b"A=2")
    texts = [found.body for found in PartSplitter().feed(body) if not found.is_picture]
    assert texts == [b"A=1", b"A=2"]


def test_boundary_may_change_and_lines_may_end_in_newlines_alone():
    body = part("text/plain", b"A=1", boundary="one") + part("text/plain", b"A=2", boundary="--two")
    assert [found.body for found in PartSplitter().feed(body.replace(b"\r\n", b"\n"))] == [b"A=1", b"A=2"]


def test_part_without_header():
    assert PartSplitter().feed(b"--b\r\n\r\nA=1\r\n--b\r\n") == (BodyPart("", b"A=1"),)


XML = b"<EventNotificationAlert>x</EventNotificationAlert>"
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) + b"\xff\xd9"


def texts(body, content_type="multipart/form-data; boundary=b", *, pieces=(1, 7, 10_000), cut=False):
    """The texts of a body, the same in any pieces."""
    found = set()
    for size in pieces:
        splitter = PartSplitter(element=ELEMENT, content_type=content_type)
        parts = [one for place in range(0, len(body), size) for one in splitter.feed(body[place : place + size])]
        parts += splitter.end(cut=cut)
        found.add(tuple(one.body.strip(b"\r\n") for one in parts if not one.is_picture))
    (same,) = found
    return list(same)


@pytest.mark.parametrize(
    "body",
    [
        XML,
        b"\r\n" + XML + b"\0",
        b"--b\r\nContent-Type: application/octet-stream\r\n\r\n" + XML + b"\r\n--b--\r\n",
        b"--b\r\nContent-Type: image/jpeg\r\n\r\n" + XML + b"\r\n--b--\r\n",
        b'--b\r\nContent-Disposition: form-data; name="a.jpg"\r\n\r\n' + JPEG + b"\r\n--b\r\n\r\n" + XML,
        b"--b\r\nContent-Type: text/xml\r\n" + XML + b"--b--",
        b"--b\n\n" + XML + b"--b\nContent-Type: image/jpeg\n\n" + JPEG + b"\n--b--",
        b"--b\r\nContent-Type: image/jpeg\r\n\r\n" + JPEG + b"--b\r\n\r\n" + XML + b"\r\n",
        b"--two words\r\n\r\n" + XML + b"\r\n--two words--\r\n",
        b"a preamble\r\n--b \t\r\n\r\n" + XML.replace(b"</", b"</h:") + b"\r\n",
    ],
)
def test_text_is_found_whatever_is_around_it(body):
    for content_type in ("multipart/form-data; boundary=other", 'multipart/mixed; boundary="--b"'):
        assert [one.replace(b"h:", b"") for one in texts(body, content_type)] == [XML]


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/octet-stream", "image/jpeg", "text/xml"])
def test_bare_body_is_one_text_whatever_its_type(content_type):
    assert texts(XML, content_type) == [XML]
    assert texts(b'{"a": "--b"}', content_type) == [b'{"a": "--b"}']
    assert texts(b"--b\r\n\r\n" + XML + b"\r\n--b--", content_type) == [XML]


def test_several_documents_of_a_bare_body_are_each_found_at_once():
    assert texts(XML + b"\r\n" + XML + b"\0\0leftover", "application/xml") == [XML, XML]
    splitter = PartSplitter(element=ELEMENT, content_type="application/xml")
    assert [one.body for one in splitter.feed(XML)] == [XML], "though its end has not come"
    wide = XML.decode().encode("utf-16")
    assert texts(wide, "application/xml") == [wide]


def test_wrong_length_of_lines_or_json_never_tears_them():
    lines, json = b"Events[0].Plate=AB12345\r\n", b'{"plate": "AB12345"}'
    for text in (lines, json):
        for length in (3, 20, len(text), len(text) + 40):
            head = b"--b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % length
            assert texts(head + text + b"\r\n" + head + text + b"\r\n--b--\r\n") == [text.strip()] * 2, length


def test_lines_without_a_length_end_at_an_empty_line():
    """A stream's next part may be seconds away."""
    splitter = PartSplitter()
    (found,) = splitter.feed(b"--b\r\nContent-Type: text/plain\r\n\r\nA=1\r\nB=2\r\n\r\n")
    assert found.body == b"A=1\r\nB=2\r\n"
    assert splitter.feed(b"--b\r\n\r\nHeart") == ()
    assert [one.body for one in splitter.feed(b"beat\r\n--b\r\n\r\n\r\nA=3\n\n")] == [b"Heartbeat", b"\r\nA=3\n"]


def test_what_came_before_a_cut_is_found_and_half_a_line_is_not():
    head = b"--b\r\n\r\n"
    assert texts(head + b'{"plate": "AB12"}', cut=True) == [b'{"plate": "AB12"}']
    assert texts(head + b"Events[0].Plate=AB1", cut=True) == []
    assert texts(head + b"Events[0].Plate=AB12\r\n", cut=False) == [b"Events[0].Plate=AB12"]
    assert texts(head + XML + b"\r\n--b\r\nContent-Type: image/jpeg\r\n\r\n\xff\xd8", cut=True) == [XML]


def test_parts_before_a_fault_count():
    splitter = PartSplitter(element=ELEMENT)
    assert [one.body for one in splitter.feed(b"--b\r\n\r\n" + XML + b"\r\n--b\r\n" + b"x" * 5000)] == [XML]
    with pytest.raises(ProtocolViolation):
        splitter.end()


@pytest.mark.long("linear time shows in real time alone")
@pytest.mark.parametrize("filling", [b"--b", b"EventNotificationAlert>", b"</h:", b"\n--", b"\n\n", b"}--a"])
@pytest.mark.parametrize("begin", [b"<", b"{", b"x", b"\xff\xd8"])
def test_text_that_looks_like_its_end_all_over_takes_linear_time(begin, filling):
    body = b"--b\r\n\r\n" + begin + filling * (60_000 // len(filling))
    splitter = PartSplitter(element=ELEMENT)
    begun = time.thread_time()
    for place in range(0, len(body), 512):
        splitter.feed(body[place : place + 512])
    assert time.thread_time() - begun < 0.1


@pytest.mark.long("linear time shows in real time alone")
def test_long_text_in_small_pieces_is_searched_once():
    splitter = PartSplitter(content_type="application/json", largest_text=8 * 1024 * 1024)
    begun = time.thread_time()
    for piece in [b'{"image": "'] + [b"A" * 64] * 16_000:
        splitter.feed(piece)
    assert time.thread_time() - begun < 2.0


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
    splitter = PartSplitter(element=ELEMENT)
    try:
        for place in range(0, len(noise), size):
            splitter.feed(noise[place : place + size])
    except ProtocolViolation:
        pass


@pytest.mark.long("linear time shows in real time alone")
@pytest.mark.parametrize("tiny", [b"--b\n\n", b"--b\n\n{}\n", b"--b\n\n<a/>\n", b"--b\n\n\xff\xd8\n"])
def test_many_tiny_parts_in_one_piece_take_linear_time(tiny):
    begun = time.thread_time()
    PartSplitter(element=ELEMENT).feed(tiny * 40_000)
    assert time.thread_time() - begun < 3.0
