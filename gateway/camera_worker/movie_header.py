"""The header of a finished MP4 (ISO/IEC 14496-12): says when the film ends. Blocking."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

_CONTAINERS = frozenset({b"moov", b"trak", b"edts"})
_BOX = struct.Struct(">I4s")
_DURATION_AT = {b"mvhd": (16, 24), b"tkhd": (20, 28), b"elst": (8, 8)}
"""Where in a box's content its duration stands, by version 0 and 1."""
_LENGTHS = (struct.Struct(">I"), struct.Struct(">Q"))


def end_at(file: Path, *, seconds: Fraction) -> None:
    """Make every track end after so many seconds of the film at the latest: what comes later is not shown.

    Pictures that others are decoded from must be in the file, though they are shown after its end.
    """
    with file.open("r+b") as opened:
        scale = 0
        for kind, at in _boxes(opened, 0, file.stat().st_size):
            opened.seek(at)
            version = opened.read(1)[0] & 1
            if kind == b"mvhd":
                opened.seek(at + (20 if version else 12))
                (scale,) = struct.unpack(">I", opened.read(4))
            limit = round(seconds * scale)
            if kind == b"elst":
                _end_edits(opened, at, version, limit)
            else:
                _lower(opened, at + _DURATION_AT[kind][version], version, limit)


def _boxes(opened: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The boxes that tell a duration, each with where its content begins; the film's own comes first."""
    while at + _BOX.size <= end:
        opened.seek(at)
        size, kind = _BOX.unpack(opened.read(_BOX.size))
        if size < _BOX.size:
            return  # to the end of the file, or of 64 bits: no header is
        if kind in _CONTAINERS:
            yield from _boxes(opened, at + _BOX.size, at + size)
        elif kind in _DURATION_AT:
            yield kind, at + _BOX.size
        at += size


def _end_edits(opened: BinaryIO, at: int, version: int, limit: int) -> None:
    """Shorten edits so that together they are no longer than `limit`."""
    opened.seek(at + 4)
    (count,) = struct.unpack(">I", opened.read(4))
    length = _LENGTHS[version]
    place, left = at + 8, limit
    for _ in range(count):
        left -= _lower(opened, place, version, left)
        place += 2 * length.size + 4


def _lower(opened: BinaryIO, at: int, version: int, limit: int) -> int:
    """Make a duration at most `limit`; what it is then."""
    length = _LENGTHS[version]
    opened.seek(at)
    (told,) = length.unpack(opened.read(length.size))
    lowered = min(told, max(0, limit))
    if lowered != told:
        opened.seek(at)
        opened.write(length.pack(lowered))
    return int(lowered)
