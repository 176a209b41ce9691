import random

import pytest
from held_memory import held_bytes
from hostile_camera import film
from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp import h264
from drivers.rtsp.depacketizer import LARGEST_PICTURE, Depacketizer
from drivers.rtsp.frames import VideoCodec
from drivers.rtsp.packetizer import Packetizer
from drivers.rtsp.rtp_packets import Reordering, payload_offset

pytestmark = pytest.mark.usefixtures("each_code")


def packets_of(frames):
    packetizer = Packetizer(ssrc=1, sequence=65_530, timestamp=0xFFFFFF00, largest=300)
    return [packetizer.packets(frame) for frame in frames]


def units_of(picture):
    return tuple(unit.removeprefix(h264.START_CODE) for unit in picture.units)


def unmarked(packet):
    return packet[:1] + bytes((packet[1] & 0x7F,)) + packet[2:]


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_pictures_come_back_as_they_went(codec):
    frames = film(codec)[:20]
    back = Depacketizer(codec=VideoCodec(codec))
    pictures = [picture for packets in packets_of(frames) for packet in packets for picture in back.push(packet)]
    assert [picture.keyframe for picture in pictures] == [frame.keyframe for frame in frames]
    assert [units_of(picture) for picture in pictures] == [tuple(h264.nal_units(frame.data)) for frame in frames]
    assert not any(picture.damaged for picture in pictures)
    assert (back.lost, back.refused) == (0, 0)


def test_a_lost_mark_ends_a_picture_at_the_next_timestamp():
    packets = packets_of(film()[:3])
    packets[1][-1] = unmarked(packets[1][-1])
    back = Depacketizer(codec=VideoCodec.H264)
    assert [len(back.push(packet)) for packet in packets[1]] == [0] * len(packets[1])
    assert not back.push(packets[2][0])[0].damaged


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_a_lost_packet_damages_no_later_picture(codec, marked):
    frames = film(codec)[:20]
    packets = [[packet if marked else unmarked(packet) for packet in picture] for picture in packets_of(frames)]
    del packets[3][-1]
    back = Depacketizer(codec=VideoCodec(codec))
    pictures = [picture for of_one in packets for packet in of_one for picture in back.push(packet)]
    assert [number for number, picture in enumerate(pictures) if picture.damaged] == [3]
    whole = [tuple(h264.nal_units(frame.data)) for number, frame in enumerate(frames[: len(pictures)]) if number != 3]
    assert [units_of(picture) for picture in pictures if not picture.damaged] == whole


def test_a_picture_that_was_lost_as_a_whole_damages_no_other():
    frames = film()[:20]
    packets = [packet for number, of_one in enumerate(packets_of(frames)) if number != 3 for packet in of_one]
    back = Depacketizer(codec=VideoCodec.H264)
    pictures = [picture for packet in packets for picture in back.push(packet)]
    assert [number for number, picture in enumerate(pictures) if picture.after_loss] == [3]
    assert len(pictures) == 19
    assert not any(picture.damaged for picture in pictures)


def test_a_picture_without_its_first_slice_is_damaged():
    back = Depacketizer(codec=VideoCodec.H264)
    heads = [b"\x80" + mark + number + bytes(8) for mark, number in ((b"\xe0", b"\0\x01"), (b"\xe0", b"\0\x03"))]
    assert not back.push(heads[0] + b"\x65\x88whole")[0].damaged
    second = heads[1][:4] + b"\0\0\x0b\xb8" + heads[1][8:] + b"\x41\x08second slice"
    assert back.push(second)[0].damaged


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_a_fragment_of_a_keyframe_tells_that_one_was_lost(codec):
    frames = [frame for frame in film(codec)[:40] if frame.keyframe][1:2]
    packets = packets_of(frames)[0]
    back = Depacketizer(codec=VideoCodec(codec))
    pictures = [picture for packet in packets[-2:] for picture in back.push(packet)]
    assert [(picture.keyframe, picture.damaged) for picture in pictures] == [(True, True)]


def test_a_sender_that_marks_every_slice_damages_the_first_picture_alone():
    back = Depacketizer(codec=VideoCodec.H264)
    slices = (b"\x65\x88first", b"\x65\x08second", b"\x65\x08third")
    pictures = []
    for number in range(12):
        head = b"\x80\xe0" + number.to_bytes(2, "big") + (3_000 * (number // 3)).to_bytes(4, "big") + bytes(4)
        pictures += back.push(head + slices[number % 3])
    assert [units_of(picture) for picture in pictures if not picture.damaged][1:] == [slices, slices]


def test_several_units_in_one_packet():
    units = list(h264.nal_units(film()[0].data))
    small = [unit for unit in units if len(unit) < 200]
    body = b"\x18" + b"".join(len(unit).to_bytes(2, "big") + unit for unit in small)
    head = bytes.fromhex("80e000010000000000000001")
    rest = bytes.fromhex("80e000020000000000000001") + b"\x65\x88slice"
    back = Depacketizer(codec=VideoCodec.H264)
    assert back.push(head + body) == []
    assert units_of(back.push(rest)[0]) == (*small, b"\x65\x88slice")


def test_a_fragment_without_end_does_not_grow_without_end():
    back = Depacketizer(codec=VideoCodec.H264)
    for number in range(LARGEST_PICTURE // 1_000 + 100):
        start = b"\x7c" + (b"\x85" if number == 0 else b"\x05")
        back.push(b"\x80\x60" + (number & 0xFFFF).to_bytes(2, "big") + bytes(8) + start + bytes(1_000))
    assert held_bytes(back) < 10_000


def all_at_once(back, packets):
    """The pictures of packets that came together."""
    pictures, at = [], 0
    while (at := back.take(packets, at)) < len(packets):
        whole, at = back.wholes(packets, at)
        pictures += whole
        if at < len(packets):
            pictures += back.push(packets[at])
            at += 1
    return pictures


@given(st.randoms(use_true_random=False), st.sampled_from(["h264", "h265"]))
def test_packets_taken_together_make_the_pictures_that_they_make_one_by_one(chance, codec):
    packets = [packet for packets in packets_of(film(codec)[:6]) for packet in packets]
    for _ in range(chance.randrange(4)):  # lost, repeated, cut short, of another encoding, without end
        spoilt = chance.randrange(len(packets) - 1)
        packet = packets[spoilt]
        other = packet[:1] + bytes(byte ^ 1 for byte in packet[1:2]) + packet[2:]
        packets[spoilt : spoilt + 1] = chance.choice([[], [packet, packet], [packet[: chance.randrange(18)]], [other]])
    one_by_one, together = (Depacketizer(codec=VideoCodec(codec)) for _ in range(2))
    expected = [picture for packet in packets for picture in one_by_one.push(packet)]
    cut = chance.randrange(len(packets))
    assert all_at_once(together, packets[:cut]) + all_at_once(together, packets[cut:]) == expected
    assert (together.lost, together.refused) == (one_by_one.lost, one_by_one.refused)


def test_a_fragment_that_is_taken_together_does_not_grow_without_end():
    back = Depacketizer(codec=VideoCodec.H264)
    head = b"\x80\x60" + bytes(2) + bytes(8) + b"\x7c\x85"
    back.push(head + bytes(1_000))
    for number in range(1, LARGEST_PICTURE // 50_000 + 2):
        packet = b"\x80\x60" + number.to_bytes(2, "big") + bytes(8) + b"\x7c\x05" + bytes(50_000)
        all_at_once(back, [packet])
    assert held_bytes(back) < 10_000


@given(st.lists(st.binary(max_size=80), max_size=30), st.sampled_from(VideoCodec))
def test_any_bytes_are_taken(packets, codec):
    back = Depacketizer(codec=codec)
    for number, packet in enumerate(packets):
        back.push(packet)
        back.push(b"\x80\xe0" + number.to_bytes(2, "big") + packet)


@given(st.binary(max_size=40))
def test_a_payload_begins_inside_its_packet(packet):
    at = payload_offset(packet)
    assert at is None or 12 <= at <= len(packet)


def sequenced(number):
    return b"\x80\x60" + (number & 0xFFFF).to_bytes(2, "big") + bytes(8)


@given(st.integers(0, 0xFFFF), st.randoms(use_true_random=False))
def test_what_is_shuffled_a_little_comes_out_in_order(first, shuffler):
    packets = [sequenced(first + number) for number in range(40)]
    mixed = [packets[0]]
    for at in range(1, 40, 8):
        part = packets[at : at + 8]
        shuffler.shuffle(part)
        mixed += part
    order = Reordering()
    out = [packet for packet in mixed for copy in (packet, packet) for packet in order.push(copy, 0.0)]
    assert out == packets


def test_what_never_comes_is_waited_for_a_little_only():
    order = Reordering(seconds=0.1)
    assert order.push(sequenced(1), 0.0) == [sequenced(1)]
    assert order.push(sequenced(3), 0.0) == []
    assert order.push(sequenced(4), 0.05) == []
    assert order.push(sequenced(5), 0.11) == [sequenced(3), sequenced(4), sequenced(5)]
    order = Reordering(most=4)
    order.push(sequenced(1), 0.0)
    held = [order.push(sequenced(number), 0.0) for number in (10, 11, 12, 13)]
    assert held[-1] == [sequenced(number) for number in (10, 11, 12, 13)]
    noise = random.Random(2)
    few = held_bytes(order)
    for _ in range(5_000):
        order.push(sequenced(noise.randrange(65_536)), 0.0)
        assert held_bytes(order) < few + 2_000


def numbered(payloads, *, sequence=1, timestamp=0, marks=(), sender=7):
    """RTP packets of these payloads, those at the places `marks` with the mark."""
    return [
        b"\x80" + bytes(((0x80 if place in marks else 0) | 96,)) + (sequence + place & 0xFFFF).to_bytes(2, "big")
        + timestamp.to_bytes(4, "big") + sender.to_bytes(4, "big") + payload
        for place, payload in enumerate(payloads)
    ]  # fmt: skip


def fragments(unit, *, h265=False, size=300, ends=True):
    head, body, kind = unit[:1], unit[1:], unit[0] & 0x1F
    first = bytes((unit[0] & 0xE0 | 28,))
    if h265:
        head, body, kind = unit[:2], unit[2:], unit[0] >> 1 & 0x3F
        first = bytes((head[0] & 0x81 | 49 << 1, head[1]))
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    last = len(pieces) - 1
    return [
        first + bytes((kind | 0x80 * (not place) | 0x40 * (ends and place == last),)) + piece
        for place, piece in enumerate(pieces)
    ]


def aggregated(unit, *, h265=False):
    return [(b"\x60\x01" if h265 else b"\x78") + len(unit).to_bytes(2, "big") + unit]


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("between", [b"\0\0\1", b"\0\0\0\1", b"\0\0\0\0\0\1"])
@pytest.mark.parametrize("leading", [b"", b"\0\0\0\1"])
@pytest.mark.parametrize("way", ["whole", "fragments", "aggregated"])
def test_a_unit_that_holds_start_codes_is_taken_as_the_units_between_them(codec, between, leading, way):
    h265 = codec == "h265"
    frame = next(frame for frame in film(codec) if frame.keyframe)
    units = tuple(h264.nal_units(frame.data))
    glued = leading + between.join(units)
    payloads = {
        "whole": lambda: [glued],
        "fragments": lambda: fragments(glued, h265=h265),
        "aggregated": lambda: aggregated(glued, h265=h265),
    }[way]()
    back = Depacketizer(codec=VideoCodec(codec))
    pictures = all_at_once(back, numbered(payloads, marks={len(payloads) - 1}))
    assert [(units_of(picture), picture.keyframe, picture.damaged) for picture in pictures] == [(units, True, False)]
    assert pictures[0].others == units[:-1]


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_of_units_without_number_that_are_no_slices_a_picture_keeps_some(codec):
    frame = next(frame for frame in film(codec) if frame.keyframe)
    *sets, slice_ = h264.nal_units(frame.data)
    head = b"\x06" if codec == "h264" else b"\x4e\x01"
    hints = [head + b"\x05\x03" + number.to_bytes(3) + b"\x80" for number in range(0x010101, 0x010101 + 5_000)]
    glued = h264.START_CODE.join([*sets, *hints, slice_])
    payloads = fragments(glued, h265=codec == "h265")
    pictures = all_at_once(Depacketizer(codec=VideoCodec(codec)), numbered(payloads, marks={len(payloads) - 1}))
    assert [(picture.keyframe, picture.damaged) for picture in pictures] == [(True, False)]
    kept = units_of(pictures[0])
    assert kept[: len(sets)] == tuple(sets)
    assert kept[-1] == slice_
    assert len(kept) < 200


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("missing", [0, 1, -1])
def test_a_lost_part_of_glued_units_tells_that_a_keyframe_was_lost(codec, missing):
    frame = next(frame for frame in film(codec) if frame.keyframe)
    packets = numbered(fragments(h264.START_CODE.join(h264.nal_units(frame.data)), h265=codec == "h265"))
    del packets[missing]
    back = Depacketizer(codec=VideoCodec(codec))
    after = numbered([b"\x41\x9a" if codec == "h264" else b"\x02\x01\x80"], sequence=len(packets) + 2, timestamp=3_000)
    pictures = all_at_once(back, packets + after)
    assert [(picture.keyframe, picture.damaged) for picture in pictures] == [(True, True)]


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("marks", ["last", "none", "each"])
def test_a_fragmented_unit_without_an_end_is_complete_where_the_next_begins(codec, marks):
    frames, sequence, packets = film(codec)[:12], 1, []
    for number, frame in enumerate(frames):
        payloads = [
            part
            for unit in h264.nal_units(frame.data)
            for part in (fragments(unit, h265=codec == "h265", ends=False) if len(unit) > 300 else [unit])
        ]
        marked = {"last": {len(payloads) - 1}, "none": set(), "each": set(range(len(payloads)))}[marks]
        packets += numbered(payloads, sequence=sequence, timestamp=3_000 * number, marks=marked)
        sequence += len(payloads)
    pictures = all_at_once(Depacketizer(codec=VideoCodec(codec)), packets)
    assert not any(picture.damaged for picture in pictures)
    whole = [tuple(h264.nal_units(frame.data)) for frame in frames]
    assert [units_of(picture) for picture in pictures] == whole[: len(pictures)]
    assert len(pictures) >= len(frames) - 1


@given(st.randoms(use_true_random=False), st.sampled_from(["h264", "h265"]), st.booleans())
def test_sequence_numbers_that_begin_anew_lose_no_picture(chance, codec, other_sender):
    """Over TCP nothing is lost, so each picture comes through, wherever the new count begins."""
    frames, pictures = film(codec)[:8], []
    back, sequence, sender = Depacketizer(codec=VideoCodec(codec)), 20, 1
    for number, frame in enumerate(frames):
        if chance.random() < 0.5:
            sequence = chance.choice([0, 0, 1, 19, chance.randrange(0x10000)])
            sender += other_sender
        packetizer = Packetizer(ssrc=sender, sequence=sequence, timestamp=3_600 * number, largest=300)
        packets = [*packetizer.packets(frame)]
        sequence = sequence + len(packets) & 0xFFFF
        pictures += all_at_once(back, packets)
    assert [units_of(picture) for picture in pictures] == [tuple(h264.nal_units(frame.data)) for frame in frames]
    assert not any(picture.damaged for picture in pictures)


def test_a_count_that_begins_anew_within_a_picture_damages_nothing():
    """The numbers of some cameras wrap at 15 bits."""
    unit = film()[0].data
    payloads = fragments(b"\x65\x88" + unit, size=100)
    packets = numbered(payloads, marks={len(payloads) - 1}, sequence=0x7FFF - 3)
    wrapped = [packet[:2] + bytes((packet[2] & 0x7F,)) + packet[3:] for packet in packets]
    pictures = all_at_once(Depacketizer(codec=VideoCodec.H264), wrapped)
    assert [picture.damaged for picture in pictures] == [False]
    assert pictures[0].data == h264.START_CODE + b"\x65\x88" + unit


def numbers(packets):
    return [int.from_bytes(packet[2:4], "big") for packet in packets]


def pushed(order, packets):
    return numbers([ready for number, packet in enumerate(packets) for ready in order.push(packet, number * 0.001)])


@pytest.mark.parametrize("begins", [0, 150, 65_000])
@pytest.mark.parametrize("change", ["timestamp goes on", "timestamp begins anew", "other sender"])
def test_datagrams_of_a_new_count_are_taken_from_the_first_on(begins, change):
    order = Reordering()
    before = numbered([b"x"] * 20, sequence=200, timestamp=5_000_000)
    timestamp = 7 if change == "timestamp begins anew" else 5_003_600
    after = numbered([b"x"] * 60, sequence=begins, timestamp=timestamp, sender=9 if change == "other sender" else 7)
    told = pushed(order, before + after)
    assert told == [*range(200, 220), *(begins + number & 0xFFFF for number in range(60))]


def test_datagrams_that_are_repeated_or_late_begin_no_new_count():
    order = Reordering()
    packets = [numbered([b"x"], sequence=number, timestamp=900 * (number // 4))[0] for number in range(400)]
    sent = [packet for at in range(0, 400, 20) for packet in packets[at : at + 20] + packets[max(0, at - 10) : at + 20]]
    assert pushed(order, sent) == list(range(400))


def test_late_datagrams_without_end_are_a_new_count_of_which_few_are_lost():
    """Numbers and timestamps go back by a little, as after a short restart."""
    order = Reordering()
    packets = [numbered([b"x"], sequence=number, timestamp=900 * number)[0] for number in range(200)]
    assert pushed(order, packets + packets)[200:] == list(range(32, 200))
