"""Count commits that are lost in a damaged write-ahead log. SQLite itself stops silently at the first wrong frame.

Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_HEADER = struct.Struct(">8I")
HEADER_BYTES = _HEADER.size
"""The size of a log without a commit."""
_FRAME = struct.Struct(">6I")
_MAGIC_LITTLE, _MAGIC_BIG = 0x377F0682, 0x377F0683
_MASK = 0xFFFFFFFF


def commits_lost(wal: Path) -> int:
    """Return how many commits of the log are behind its first wrong frame; 0 if it is intact or missing.

    A power cut leaves at most one, because each commit is flushed before the next begins. Two or more mean damage.
    Raises OSError if the file cannot be read.
    """
    try:
        with wal.open("rb") as file:
            return _commits_lost(file)
    except FileNotFoundError:
        return 0


def _commits_lost(file: BinaryIO) -> int:
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return 0
    magic, _, page_size, _, salt1, salt2, sum1, sum2 = _HEADER.unpack(head)
    order = "<" if magic == _MAGIC_LITTLE else ">"
    sums = _checksum(order, head[:24], (0, 0))
    whole = magic in (_MAGIC_LITTLE, _MAGIC_BIG) and sums == (sum1, sum2)
    salts = (salt1, salt2)
    if not whole:
        # Without a valid header, take the salts of the first frame and SQLite's default page size.
        page_size = 4096
        salts = _FRAME.unpack(first)[2:4] if len(first := file.read(_FRAME.size)) == _FRAME.size else salts
        file.seek(_HEADER.size)
    lost = 0
    while len(frame := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
        _, pages_after_commit, *frame_salts, sum1, sum2 = _FRAME.unpack(frame[: _FRAME.size])
        if tuple(frame_salts) != salts:
            if whole:
                whole = False  # left by an earlier use of the log, or damaged: later frames with the salts decide
            continue
        if whole:
            sums = _checksum(order, frame[_FRAME.size :], _checksum(order, frame[:8], sums))
            whole = sums == (sum1, sum2)
        if not whole and pages_after_commit:
            lost += 1
    return lost


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
