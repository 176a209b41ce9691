"""Salvage of a killed worker's `.part` files: their complete frames become segments.

The last frame in a file may be cut short and is dropped; everything before it is kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from drivers.contract import ProtocolViolation
from drivers.rtsp import formats
from drivers.rtsp.frames import Entry, VideoCodec, VideoFormat
from gateway.camera_worker.segment_file import PART_SUFFIX
from gateway.camera_worker.segmenter import utc_hour
from gateway.camera_worker.transport_stream import SOUND_PID, decoded_time, sound_name
from gateway.domain.footage import SegmentFinished, as_found, segment_path
from gateway.runtime.clock import ClockOffset
from gateway.runtime.durable_files import sync_folder

log = structlog.get_logger(__name__)

_PACKET = 188
_SYNC = 0x47
_SOUND_HEAD = 6
"""The bytes of a PES packet before those that its length counts (ISO/IEC 13818-1, 2.4.3.7)."""
_LONGEST_TICKS = 120 * 90_000


@dataclass(frozen=True, slots=True)
class WholeFrames:
    """The part of a transport stream that holds complete frames.

    Attributes:
        size: the number of bytes to keep.
        ticks: the duration from the first frame's decoding time to the end of the last complete frame.
        frames: the number of complete frames.
        first: the bytes of the first frame (Annex B).
    """

    size: int
    ticks: int
    frames: int
    first: bytes


def whole_frames(data: bytes) -> WholeFrames | None:
    """Find the complete frames of a transport stream that breaks off; None when none is complete. Pure.

    The stream counts as broken off where a packet is missing or a piece of sound is not whole, so that the part to keep
    ends with whole pictures and whole pieces of sound.
    """
    sound_left = 0
    starts: list[tuple[int, int]] = []
    first = bytearray()
    tables_at: int | None = None
    for at, pid, payload, begins in _packets(data):
        if begins and sound_left:
            break
        if pid == SOUND_PID:
            if begins and len(payload) >= _SOUND_HEAD:
                sound_left = _SOUND_HEAD + (payload[4] << 8 | payload[5])
            sound_left -= len(payload)
            continue
        if begins and payload[:3] == b"\x00\x00\x01" and len(payload) > 19 and payload[3] & 0xF0 == 0xE0:
            starts.append((at if tables_at is None else tables_at, _decoding_time(payload)))
            if len(starts) == 1:
                first += payload[9 + payload[8] :]
            tables_at = None
        elif begins and pid < 0x1000 and payload[:1] == b"\x00":
            tables_at = at if tables_at is None else tables_at
        elif len(starts) == 1:
            first += payload
    if len(starts) < 2:
        return None
    ticks = (starts[-1][1] - starts[0][1]) % (1 << 33)
    if not 0 < ticks < _LONGEST_TICKS:
        return None
    return WholeFrames(size=starts[-1][0], ticks=ticks, frames=len(starts) - 1, first=bytes(first))


def salvage(media: Path, camera_id: int, *, offset: ClockOffset) -> list[SegmentFinished]:
    """Turn a camera's leftover `.part` files into segments, or remove them; blocking. Call it before recording."""
    saved: list[SegmentFinished] = []
    for part in sorted((media / str(camera_id)).glob(f"*/*{PART_SUFFIX}")):
        try:
            segment = _salvage_one(media, camera_id, part, offset)
        except OSError as error:
            log.warning("part_not_salvaged", camera_id=camera_id, part=part.name, error=error.strerror)
            continue
        if segment is not None:
            saved.append(segment)
    return saved


def _salvage_one(media: Path, camera_id: int, part: Path, offset: ClockOffset) -> SegmentFinished | None:
    data = part.read_bytes()
    whole = whole_frames(data) if part.stem.isdigit() else None
    if whole is None:
        part.unlink()
        return None
    started_at, duration = int(part.stem), whole.ticks * 100 // 9
    path = segment_path(camera_id, started_at, duration, utc_hour(started_at))
    with part.open("r+b") as file:
        file.truncate(whole.size)
        os.fsync(file.fileno())
    final = media / path
    final.parent.mkdir(exist_ok=True)
    part.rename(final)
    sync_folder(final.parent)
    sync_folder(part.parent)
    described = _format(whole.first)
    codec = described.codec if described else ""
    entry, recovery = formats.entry_of(described.kind, whole.first) if described else (Entry.NONE, 0)
    sound = sound_name(data[: whole.size])
    segment = SegmentFinished(
        camera_id=camera_id,
        path=path,
        grew_as=str(part.relative_to(media)),
        started_at=started_at,
        clock_trusted=offset.trusted,
        duration=duration,
        size=whole.size,
        codec=f"{codec},{sound}" if codec and sound else codec,
        width=described.width if described else 0,
        height=described.height if described else 0,
        frames=whole.frames,
        sha256=hashlib.sha256(memoryview(data)[: whole.size]).hexdigest(),
        entry=entry,
        whole_after=recovery * duration // whole.frames,
    )
    return as_found(segment, offset)


def _format(first: bytes) -> VideoFormat | None:
    try:
        # parameter sets of one codec are not recognised as those of the other
        return formats.of_units(VideoCodec.H265, first) or formats.of_units(VideoCodec.H264, first)
    except ProtocolViolation:
        return None


def _packets(data: bytes) -> Iterator[tuple[int, int, bytes, bool]]:
    """Iterate over transport packets up to the first invalid or missing one.

    Each is an offset, a PID, a payload, and whether a unit begins (payload_unit_start_indicator).
    """
    counters: dict[int, int] = {}
    for at in range(0, len(data) - _PACKET + 1, _PACKET):
        if data[at] != _SYNC:
            return
        pid = (data[at + 1] & 0x1F) << 8 | data[at + 2]
        begins = bool(data[at + 1] & 0x40)
        control, counter = data[at + 3] >> 4 & 3, data[at + 3] & 0x0F
        if control & 1 and counter != (counters.get(pid, counter - 1) + 1) & 0x0F:
            return
        counters[pid] = counter
        skip = 4 + (1 + data[at + 4] if control & 2 else 0)
        yield at, pid, data[at + skip : at + _PACKET] if control & 1 else b"", begins


def _decoding_time(payload: bytes) -> int:
    at = 14 if payload[7] & 0x40 else 9
    return decoded_time(payload[at : at + 5])
