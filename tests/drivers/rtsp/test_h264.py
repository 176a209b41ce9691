import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.rtsp import h264


@pytest.mark.parametrize(("width", "height"), [(320, 180), (640, 360), (1920, 1080), (352, 288)])
def test_reads_the_picture_size_with_its_cropping(encoded, width, height):
    described = h264.video_format(*h264.parameter_sets(encoded(0.1, width=width, height=height)[0].data))
    assert (described.width, described.height) == (width, height)
    assert described.codec.startswith("avc1.42c0")


def test_reads_a_high_profile_camera():
    sps = bytes.fromhex("674d001f95a814016e9b808080810000030001000003003284")
    assert h264.video_format(sps, b"\x68").codec == "avc1.4d001f"
    high = bytes.fromhex("67640028acd940780227e5c044000003000400000300c83c60c658")
    described = h264.video_format(high, b"\x68")
    assert (described.width, described.height, described.codec) == (1920, 1080, "avc1.640028")


def in_bytes(bits: str) -> bytes:
    return bytes(int(bits[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(bits), 8))


@pytest.mark.parametrize("longer_side", ["width", "height"])
def test_a_picture_wider_than_any_is_none(longer_side):
    """No file can tell its size, and no database takes such a number."""
    huge = "0" * 70 + "1" + "0" * 70
    sides = {"width": huge + "1", "height": "1" + huge}[longer_side]
    before = f"{66:08b}" + "0" * 16 + "1" + "1" + "011" + "1" + "0"
    with pytest.raises(ProtocolViolation, match="describes no picture"):
        h264.video_format(b"\x67" + in_bytes(before + sides + "1100"), b"\x68")
    assert h264.video_format(b"\x67" + in_bytes(before + "11" + "1100"), b"\x68").width == 16


@given(st.binary(max_size=60))
def test_a_damaged_sps_is_a_violation_and_nothing_worse(data):
    try:
        h264.video_format(b"\x67" + data, b"\x68")
    except ProtocolViolation:
        return


@given(st.binary(max_size=200))
def test_any_bytes_can_be_looked_at(data):
    h264.parameter_sets(data)
    assert all(h264.START_CODE[1:] not in unit for unit in h264.nal_units(data))
