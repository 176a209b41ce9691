"""H.265 as far as recording needs it: NAL units, parameter sets (ITU-T H.265, 7.3), codec names (ISO 14496-15, E.3).

Pure.
"""

from __future__ import annotations

import functools

from drivers.contract import ProtocolViolation
from drivers.rtsp import h264
from drivers.rtsp.bits import Bits
from drivers.rtsp.frames import Entry, VideoFormat

VPS, SPS, PPS, DELIMITER, PREFIX_SEI, SUFFIX_SEI = 32, 33, 34, 35, 39, 40
_FIRST_RANDOM_ACCESS, _LAST_RANDOM_ACCESS = 16, 21
_CLEAN_RANDOM_ACCESS = 21


def nal_type(unit: bytes) -> int:
    """Return the type of a NAL unit without start code."""
    return unit[0] >> 1 & 0x3F


def is_slice(kind: int) -> bool:
    """Return whether units of this type are slices of a picture."""
    return kind < VPS


def entry_of(kind: int) -> Entry:
    """Return the kind of entry point of units of this type.

    A CRA picture counts as RECOVERY, because some pictures after it may refer to earlier ones.
    """
    if not _FIRST_RANDOM_ACCESS <= kind <= _LAST_RANDOM_ACCESS:
        return Entry.NONE
    return Entry.RECOVERY if kind == _CLEAN_RANDOM_ACCESS else Entry.IDR


def recovery_pictures(unit: bytes) -> int | None:
    """Return recovery_poc_cnt of a prefix SEI unit (D.2.8), at least 0; None when it has no recovery point."""
    payload = h264.recovery_payload(unit[2:])
    try:
        return None if payload is None else max(0, Bits(payload).signed())
    except IndexError:
        return None


def parameter_sets(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the last VPS, SPS and PPS before an Annex B stream's first slice; empty where there is none."""
    found = {VPS: b"", SPS: b"", PPS: b""}
    for unit in h264.nal_units(data):
        kind = nal_type(unit)
        if is_slice(kind):
            break
        if kind in found:
            found[kind] = unit
    return found[VPS], found[SPS], found[PPS]


@functools.lru_cache(maxsize=64)  # each keyframe repeats its parameter sets, and they seldom change
def video_format(vps: bytes, sps: bytes, pps: bytes) -> VideoFormat:
    """Return the format that these parameter sets describe.

    Raises:
        ProtocolViolation: the SPS is cut short or describes no picture.
    """
    try:
        width, height, reordering = _picture(sps)
        codec = _codec(sps)
    except IndexError as error:
        raise ProtocolViolation("the camera's sequence parameter set is cut short") from error
    if not (0 < width <= h264.LONGEST_SIDE and 0 < height <= h264.LONGEST_SIDE):
        raise ProtocolViolation("the camera's sequence parameter set describes no picture")
    return VideoFormat(sps=sps, pps=pps, width=width, height=height, codec=codec, vps=vps, reordering=reordering)


def _picture(sps: bytes) -> tuple[int, int, int]:
    bits = Bits(sps[2:])
    bits.skip(4)
    layers = bits.bits(3)
    bits.skip(1 + 88 + 8)
    present = [(bits.bits(1), bits.bits(1)) for _ in range(layers)]
    if layers:
        bits.skip(2 * (8 - layers))
    for profile, level in present:
        bits.skip(88 * profile + 8 * level)
    bits.unsigned()
    chroma = bits.unsigned()
    if chroma == 3:
        bits.skip(1)
    width, height = bits.unsigned(), bits.unsigned()
    if bits.bits(1):
        left, right, top, bottom = (bits.unsigned() for _ in range(4))
        width -= (left + right) * (2 if chroma in (1, 2) else 1)
        height -= (top + bottom) * (2 if chroma == 1 else 1)
    for _ in range(3):
        bits.unsigned()
    every_layer = bits.bits(1)
    reordering = 0
    for _ in range(layers + 1 if every_layer else 1):
        bits.unsigned()
        reordering = bits.unsigned()
        bits.unsigned()
    return width, height, min(reordering, 16)


def _codec(sps: bytes) -> str:
    bits = Bits(sps[2:])
    bits.skip(8)
    space, tier, profile = bits.bits(2), bits.bits(1), bits.bits(5)
    compatible = int(f"{bits.bits(32):032b}"[::-1], 2)
    constraints = [bits.bits(8) for _ in range(6)]
    level = bits.bits(8)
    while constraints and not constraints[-1]:
        constraints.pop()
    parts = [f"{('', 'A', 'B', 'C')[space]}{profile}", f"{compatible:X}", f"{'H' if tier else 'L'}{level}"]
    return ".".join(["hvc1", *parts, *(f"{constraint:X}" for constraint in constraints)])
