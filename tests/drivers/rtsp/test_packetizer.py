import struct

from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp import h264
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
from drivers.rtsp.packetizer import Packetizer, SoundPacketizer, sender_report

units = st.builds(
    lambda kind, body: bytes((0x60 | kind,)) + body.replace(b"\x00", b"\x01") + b"\x80",
    st.sampled_from([1, 5, 6, 7, 8]),
    st.binary(max_size=400),
)


def depacketized(packets):
    found, fragment = [], b""
    for packet in packets:
        payload = packet[12:]
        if payload[0] & 0x1F != 28:
            found.append(payload)
            continue
        if payload[1] & 0x80:
            fragment = bytes((payload[0] & 0xE0 | payload[1] & 0x1F,))
        fragment += payload[2:]
        if payload[1] & 0x40:
            found.append(fragment)
    return found


@given(st.lists(units, min_size=1, max_size=8), st.integers(30, 200), st.integers(0, 65535))
def test_what_is_taken_apart_can_be_put_together(sent, largest, sequence):
    packetizer = Packetizer(ssrc=1, sequence=sequence, timestamp=2**32 - 1, largest=largest)
    data = b"".join(h264.START_CODE + unit for unit in sent)
    packets = packetizer.packets(EncodedFrame(data, 5, 5, True, 0.0))
    assert depacketized(packets) == sent
    assert max(map(len, packets)) <= largest
    assert [packet[1] >> 7 for packet in packets] == [0] * (len(packets) - 1) + [1]
    assert [int.from_bytes(p[2:4], "big") for p in packets] == [(sequence + n) % 65536 for n in range(len(packets))]
    assert {packet[4:8] for packet in packets} == {(4).to_bytes(4, "big")}


def test_sound_goes_into_packets_that_our_own_reader_takes_apart():
    kind = AudioFormat(AudioCodec.AAC, rate=48_000, channels=2)
    packetizer = SoundPacketizer(ssrc=7, sequence=65_535, timestamp=2**32 - 48_000, rate=48_000, largest=200)
    small = packetizer.packets(EncodedAudio(b"a" * 100, 90_000, 0.0, kind))
    large = packetizer.packets(EncodedAudio(b"b" * 400, 91_920, 0.0, kind))
    assert [len(small), len(large)] == [1, 3]
    heads = [struct.unpack("!BBHIIHH", packet[:16]) for packet in small + large]
    assert [head[1] >> 7 for head in heads] == [1, 0, 0, 1], "the last of a unit is marked"
    assert {head[1] & 0x7F for head in heads} == {97}
    assert [head[2] for head in heads] == [65_535, 0, 1, 2]
    assert [head[3] for head in heads] == [0, 1024, 1024, 1024]
    assert [(head[5], head[6] >> 3) for head in heads] == [(16, 100), (16, 400), (16, 400), (16, 400)]
    assert b"".join(packet[16:] for packet in large) == b"b" * 400
    assert max(map(len, large)) <= 200
    assert packetizer.next_sequence == 3


def test_a_sender_report_tells_a_moment_of_both_clocks():
    report = sender_report(ssrc=7, timestamp=90_000, seconds=1_600_000_000.25, packets=3, octets=500)
    assert struct.unpack("!BBHIIIIII", report) == (
        0x80, 200, 6, 7, 1_600_000_000 + 2_208_988_800, 2**30, 90_000, 3, 500,
    )  # fmt: skip
