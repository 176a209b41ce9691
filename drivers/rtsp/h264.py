"""H.264 as far as recording and serving need it: NAL units and parameter sets (ITU-T H.264, 7.3 and Annex B). Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from drivers.contract import ProtocolViolation
from drivers.rtsp.bits import Bits
from drivers.rtsp.frames import VideoFormat

SLICE, IDR, SEI, SPS, PPS, DELIMITER = 1, 5, 6, 7, 8, 9
START_CODE = b"\x00\x00\x00\x01"
LONGEST_SIDE = 65_535
"""The longest side of a picture in pixels: an MP4 has 16 bits for it (ISO/IEC 14496-12, 12.1.3). Levels allow less."""
_START = b"\x00\x00\x01"
_RECOVERY_POINT = 6
_MOST_MESSAGES = 32
_HIGH_PROFILES = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})


def nal_units(data: bytes) -> Iterator[bytes]:
    """Split an Annex B stream into its NAL units, without start codes."""
    at = data.find(_START)
    while at >= 0:
        begin = at + 3
        at = data.find(_START, begin)
        unit = data[begin:] if at < 0 else data[begin:at]
        unit = unit.rstrip(b"\x00")
        if unit:
            yield unit


def nal_type(unit: bytes) -> int:
    """Return the type of a NAL unit without start code."""
    return unit[0] & 0x1F


def parameter_sets(data: bytes) -> tuple[bytes, bytes]:
    """Return the last SPS and PPS before the first slice of an Annex B stream; empty where there is none."""
    sps = pps = b""
    at = data.find(_START)
    while 0 <= at < len(data) - 3:
        kind = data[at + 3] & 0x1F
        if SLICE <= kind <= IDR:
            break
        following = data.find(_START, at + 3)
        unit = (data[at + 3 :] if following < 0 else data[at + 3 : following]).rstrip(b"\x00")
        if kind == SPS:
            sps = unit
        elif kind == PPS:
            pps = unit
        at = following
    return sps, pps


def is_bidirectional(unit: bytes) -> bool:
    """Return whether a slice is a B slice: its picture is shown before one that was decoded earlier (7.4.3)."""
    if len(unit) > 1 and unit[1] & 0x80:  # fast path for a picture's first slice, whose type is in this byte
        return unit[1] & 0xF0 == 0xA0 or unit[1] & 0xFC == 0x9C  # 1 010: type 1; 1 00111: type 6
    try:
        bits = Bits(unit[1:9])
        bits.unsigned()
        return bits.unsigned() in (1, 6)
    except IndexError:
        return False


def is_reference(data: bytes) -> bool:
    """Return whether other pictures may refer to the one in an Annex B stream (nal_ref_idc above 0)."""
    at = data.find(_START)
    while 0 <= at < len(data) - 3:
        if SLICE <= data[at + 3] & 0x1F <= IDR:
            return data[at + 3] & 0x60 != 0
        at = data.find(_START, at + 3)
    return True


def recovery_frames(unit: bytes) -> int | None:
    """Return recovery_frame_cnt of an SEI unit (D.2.8); None when it has no recovery point."""
    payload = recovery_payload(unit[1:])
    try:
        return None if payload is None else Bits(payload).unsigned()
    except IndexError:
        return None


def recovery_payload(messages: bytes) -> bytes | None:
    """Return the payload of the recovery point message in an SEI unit (7.3.2.3.1); None when there is none.

    `messages` is the unit without its header. H.265 has the same form.
    """
    data = messages.replace(b"\x00\x00\x03", b"\x00\x00")
    at = 0
    try:
        for _ in range(_MOST_MESSAGES):
            kind, at = _sei_number(data, at)
            size, at = _sei_number(data, at)
            if kind == _RECOVERY_POINT:
                return data[at : at + size]
            at += size
    except IndexError:
        pass
    return None


def _sei_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a payload type or size, and the place after it."""
    value = 0
    while data[at] == 0xFF:
        value += 255
        at += 1
    return value + data[at], at + 1


@functools.lru_cache(maxsize=64)  # each keyframe repeats its parameter sets, and they seldom change
def video_format(sps: bytes, pps: bytes) -> VideoFormat:
    """Return the format that these parameter sets describe.

    Raises:
        ProtocolViolation: the SPS is cut short or describes no picture.
    """
    try:
        width, height, reordering = _picture(sps)
    except IndexError as error:
        raise ProtocolViolation("the camera's sequence parameter set is cut short") from error
    if not (0 < width <= LONGEST_SIDE and 0 < height <= LONGEST_SIDE):
        raise ProtocolViolation("the camera's sequence parameter set describes no picture")
    return VideoFormat(
        sps=sps, pps=pps, width=width, height=height, codec=f"avc1.{sps[1:4].hex()}", reordering=reordering
    )


def _picture(sps: bytes) -> tuple[int, int, int | None]:
    """Return width, height, and the reordering depth of pictures (None if not given)."""
    bits = Bits(sps[1:])
    profile = bits.bits(8)
    bits.bits(16)
    bits.unsigned()
    chroma = 1
    if profile in _HIGH_PROFILES:
        chroma = _skip_high_profile(bits)
    bits.unsigned()
    never_reorders = _skip_picture_order(bits) or profile == 66
    bits.unsigned()
    bits.bits(1)
    width = (bits.unsigned() + 1) * 16
    map_units = bits.unsigned() + 1
    frames_only = bits.bits(1)
    height = map_units * 16 * (2 - frames_only)
    if not frames_only:
        bits.bits(1)
    bits.bits(1)
    if bits.bits(1):
        step_x = 2 if chroma in (1, 2) else 1
        step_y = (2 if chroma == 1 else 1) * (2 - frames_only)
        left, right, top, bottom = (bits.unsigned() for _ in range(4))
        width -= (left + right) * step_x
        height -= (top + bottom) * step_y
    if never_reorders:
        return width, height, 0
    try:
        return width, height, _reordering(bits) if bits.bits(1) else None
    except IndexError:  # the optional VUI may be cut short
        return width, height, None


def _reordering(bits: Bits) -> int | None:
    """Return max_num_reorder_frames, near the end of the VUI (E.1.1); None if not given."""
    if bits.bits(1) and bits.bits(8) == 255:
        bits.skip(32)
    if bits.bits(1):
        bits.skip(1)
    if bits.bits(1):
        bits.skip(4)
        if bits.bits(1):
            bits.skip(24)
    if bits.bits(1):
        bits.unsigned()
        bits.unsigned()
    if bits.bits(1):
        bits.skip(65)
    timed = False
    for _ in range(2):
        if bits.bits(1):
            _skip_hrd(bits)
            timed = True
    bits.skip(2 if timed else 1)
    if not bits.bits(1):
        return None
    bits.skip(1)
    for _ in range(4):
        bits.unsigned()
    return min(bits.unsigned(), 16)


def _skip_hrd(bits: Bits) -> None:
    count = bits.unsigned() + 1
    bits.skip(8)
    for _ in range(min(count, 32)):
        bits.unsigned()
        bits.unsigned()
        bits.skip(1)
    bits.skip(20)


def _skip_high_profile(bits: Bits) -> int:
    chroma = bits.unsigned()
    if chroma == 3:
        bits.bits(1)
    bits.unsigned()
    bits.unsigned()
    bits.bits(1)
    if bits.bits(1):
        for index in range(8 if chroma != 3 else 12):
            if bits.bits(1):
                _skip_scaling_list(bits, 16 if index < 6 else 64)
    return chroma


def _skip_scaling_list(bits: Bits, size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


def _skip_picture_order(bits: Bits) -> bool:
    """Skip the fields of the picture order; return whether its type (2) always shows pictures in decoding order."""
    kind = bits.unsigned()
    if kind == 0:
        bits.unsigned()
    elif kind == 1:
        bits.bits(1)
        bits.signed()
        bits.signed()
        for _ in range(bits.unsigned()):
            bits.signed()
    return kind == 2
