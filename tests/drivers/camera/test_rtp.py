from hypothesis import given
from hypothesis import strategies as st

from drivers.camera import h264
from drivers.camera.frames import EncodedFrame
from drivers.camera.rtp import Packetizer

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
