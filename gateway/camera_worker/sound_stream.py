"""AAC in MPEG-TS, and the parts of transport packets (ISO/IEC 13818-1; ADTS: 13818-7, 6.2). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.rtsp.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio

SOUND_PID = 0x101
TRANSPORT_PACKET = 188
PACKET_ROOM = TRANSPORT_PACKET - 4
TABLE_PID = 0x1000
SOUND_TYPE = 0x0F
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
_ADTS_SIZE = 7
_UNIT_SAMPLES = 1024
_SOUND_IDS = range(0xC0, 0xE0)
"""The length of a PES header with a presentation and a decoding time (2.4.3.6)."""


class SoundStream:
    """The muxer of one transport stream's sound."""

    def __init__(self, format_: AudioFormat) -> None:
        self._format = format_
        self._continuity = 0

    def packets(self, sound: EncodedAudio, *, at: int) -> bytes:
        """Build the transport packets of one AAC unit that plays at `at`, in ticks."""
        data = _adts(self._format, len(sound.data)) + sound.data
        head = b"\x00\x00\x01\xc0" + (len(data) + 8).to_bytes(2, "big") + b"\x84\x80\x05"
        return b"".join(self._split(head + written_time(at, mark=0x20) + data))

    def _split(self, unit: bytes) -> Iterator[bytes]:
        for at in range(0, len(unit), PACKET_ROOM):
            part = unit[at : at + PACKET_ROOM]
            missing = PACKET_ROOM - len(part)
            yield packet_head(SOUND_PID, self._continuity, begins=not at, field=missing > 0)
            yield stuffing(missing)
            yield part
            self._continuity = self._continuity + 1 & 0x0F


def packet_head(pid: int, counter: int, *, begins: bool = False, field: bool = False) -> bytes:
    """Build a transport packet's four-byte header (2.4.3.2). `begins`: a unit starts; `field`: adaptation field."""
    return bytes((0x47, (0x40 if begins else 0) | pid >> 8, pid & 0xFF, (0x30 if field else 0x10) | counter))


def stuffing(size: int) -> bytes:
    """Return this many bytes of an empty adaptation field."""
    if size < 2:
        return b"\x00" * size
    return bytes((size - 1, 0)) + b"\xff" * (size - 2)


def written_time(ticks: int, *, mark: int) -> bytes:
    """Encode a time for a PES header (2.4.3.6). `mark` is 0x20 for a single time, 0x30 and 0x10 for a pair."""
    # three parts of 3, 15 and 15 bits, each with a one behind it
    parts = (ticks & 0x1_C000_0000) << 3 | (ticks & 0x3FFF_8000) << 2 | (ticks & 0x7FFF) << 1
    return (mark << 32 | 0x01_0001_0001 | parts).to_bytes(5, "big")


def decoded_time(stamp: bytes) -> int:
    """Decode a time of a PES header (ISO/IEC 13818-1, 2.4.3.6)."""
    return (stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | (stamp[2] >> 1) << 15 | stamp[3] << 7 | stamp[4] >> 1


def sound_name(packets: bytes) -> str:
    """Return the RFC 6381 name of the sound in these transport packets; "" when there is none."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        payload = _payload(packets, at)
        begins = packets[at + 1] & 0x40 and len(payload) > _ADTS_SIZE + 9 and payload[:3] == b"\x00\x00\x01"
        if begins and payload[3] in _SOUND_IDS:
            adts = payload[9 + payload[8] :]
            return f"mp4a.40.{(adts[2] >> 6) + 1}" if len(adts) > 2 else ""
    return ""


def sound_ticks(adts: bytes) -> int:
    """Return the duration of a piece of AAC in ticks, by its ADTS header; 0 when that is invalid."""
    rate = adts[2] >> 2 & 0x0F if len(adts) >= _ADTS_SIZE else len(_RATES)
    return _UNIT_SAMPLES * TICKS_PER_SECOND // _RATES[rate] if rate < len(_RATES) else 0


def announces_sound(packets: bytes) -> bool:
    """Return whether the program map in these transport packets names any sound."""
    at = _table_at(packets)
    return at is not None and any(kind == SOUND_TYPE for kind in _kinds(packets[at + 4 : at + TRANSPORT_PACKET]))


def video_type(packets: bytes) -> int | None:
    """Return the stream type of the video in the program map of these transport packets; None when there is none."""
    at = _table_at(packets)
    if at is None:
        return None
    return next((kind for kind in _kinds(packets[at + 4 : at + TRANSPORT_PACKET]) if kind != SOUND_TYPE), None)


def _payload(packets: bytes, at: int) -> bytes:
    control = packets[at + 3] >> 4 & 3
    skip = 4 + (1 + packets[at + 4] if control & 2 else 0)
    return packets[at + skip : at + TRANSPORT_PACKET] if control & 1 else b""


def _table_at(packets: bytes) -> int | None:
    """Return the offset of the packet with the program map; None when there is none before the first picture."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        pid = (packets[at + 1] & 0x1F) << 8 | packets[at + 2]
        if pid == TABLE_PID:
            return at
        if TABLE_PID > pid >= 0x100:
            return None
    return None


def _kinds(table: bytes) -> Iterator[int]:
    """Iterate over the stream types in a program map (2.4.4.8). `table` is a packet's payload, from the pointer on.

    A table longer than its packet, from another muxer or a damaged file, is read only up to the packet's end.
    """
    end = min(1 + 3 + ((table[2] & 0x0F) << 8 | table[3]) - 4, len(table))
    at = 1 + 12 + ((table[11] & 0x0F) << 8 | table[12])
    while at + 5 <= end:
        yield table[at]
        at += 5 + ((table[at + 3] & 0x0F) << 8 | table[at + 4])


def _adts(format_: AudioFormat, size: int) -> bytes:
    profile = format_.object_type - 1 if format_.object_type <= 4 else 1  # the data itself describes added layers
    rate = _RATES.index(format_.rate)
    whole = size + _ADTS_SIZE
    return bytes(
        (
            0xFF,
            0xF1,
            profile << 6 | rate << 2 | format_.channels >> 2,
            (format_.channels & 3) << 6 | whole >> 11,
            whole >> 3 & 0xFF,
            (whole & 7) << 5 | 0x1F,
            0xFC,
        )
    )
