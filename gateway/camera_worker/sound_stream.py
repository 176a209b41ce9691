"""AAC in an MPEG-TS whose pictures another muxer writes (ISO/IEC 13818-1; ADTS: 13818-7, 6.2). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.camera.frames import AudioFormat, EncodedAudio

SOUND_PID = 0x101
TRANSPORT_PACKET = 188
_TABLE_PID = 0x1000
_STREAM_TYPE_ADTS = 0x0F
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
_ADTS_SIZE = 7
_PICTURE_IDS = range(0xE0, 0xF0)
_SOUND_IDS = range(0xC0, 0xE0)
_WRAP = 1 << 33


class SoundStream:
    """The sound of one transport stream."""

    def __init__(self, format_: AudioFormat) -> None:
        self._format = format_
        self._continuity = 0
        self._shift: int | None = None
        self._tables: dict[bytes, bytes] = {}

    def announced(self, pictures: bytes, *, dts: int) -> bytes:
        """A frame's transport packets with the sound in their table of streams.

        `dts` is the frame's: the muxer may have moved all times, and sound has to be moved with them.
        """
        if self._shift is None and (written := first_time(pictures)) is not None:
            self._shift = written - dts
        at = _table_at(pictures)
        if at is None:
            return pictures
        table = pictures[at + 4 : at + TRANSPORT_PACKET]
        if table not in self._tables:
            self._tables = {table: _with_sound(table)}
        return b"".join((pictures[: at + 4], self._tables[table], pictures[at + TRANSPORT_PACKET :]))

    def packets(self, sound: EncodedAudio) -> bytes:
        """The transport packets of one unit; none before the first frame."""
        if self._shift is None:
            return b""
        data = _adts(self._format, len(sound.data)) + sound.data
        time = (sound.pts + self._shift) % _WRAP
        head = b"\x00\x00\x01\xc0" + (len(data) + 8).to_bytes(2, "big") + b"\x84\x80\x05" + _time(time)
        return b"".join(self._split(head + data))

    def _split(self, unit: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(unit):
            room = TRANSPORT_PACKET - 4
            part = unit[at : at + room]
            stuffing = room - len(part)
            head = bytes(
                (
                    0x47,
                    (0 if at else 0x40) | SOUND_PID >> 8,
                    SOUND_PID & 0xFF,
                    (0x30 if stuffing else 0x10) | self._continuity,
                )
            )
            self._continuity = self._continuity + 1 & 0x0F
            if stuffing:
                head += bytes((stuffing - 1,)) + (b"\x00" + b"\xff" * (stuffing - 2) if stuffing > 1 else b"")
            yield head + part
            at += len(part)


def first_time(packets: bytes) -> int | None:
    """The decoding time of the first picture that begins in these transport packets."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        payload = _payload(packets, at)
        if packets[at + 1] & 0x40 and payload[:3] == b"\x00\x00\x01" and payload[3] in _PICTURE_IDS:
            begin = 14 if payload[7] & 0x40 else 9
            return decoded_time(payload[begin : begin + 5])
    return None


def decoded_time(stamp: bytes) -> int:
    """A time as PES headers write it (ISO/IEC 13818-1, 2.4.3.6)."""
    return (stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | (stamp[2] >> 1) << 15 | stamp[3] << 7 | stamp[4] >> 1


def sound_name(packets: bytes) -> str:
    """The RFC 6381 name of the sound in these transport packets; "" when there is none."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        payload = _payload(packets, at)
        begins = packets[at + 1] & 0x40 and len(payload) > _ADTS_SIZE + 9 and payload[:3] == b"\x00\x00\x01"
        if begins and payload[3] in _SOUND_IDS:
            adts = payload[9 + payload[8] :]
            return f"mp4a.40.{(adts[2] >> 6) + 1}" if len(adts) > 2 else ""
    return ""


def announces_sound(packets: bytes) -> bool:
    """Whether the table of streams in these transport packets names any sound."""
    at = _table_at(packets)
    return at is not None and any(kind == _STREAM_TYPE_ADTS for kind in _kinds(packets[at + 4 : at + TRANSPORT_PACKET]))


def _payload(packets: bytes, at: int) -> bytes:
    control = packets[at + 3] >> 4 & 3
    skip = 4 + (1 + packets[at + 4] if control & 2 else 0)
    return packets[at + skip : at + TRANSPORT_PACKET] if control & 1 else b""


def _table_at(packets: bytes) -> int | None:
    """Where the table of streams is, which stands before the picture."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        pid = (packets[at + 1] & 0x1F) << 8 | packets[at + 2]
        if pid == _TABLE_PID:
            return at
        if _TABLE_PID > pid >= 0x100:
            return None
    return None


def _kinds(table: bytes) -> Iterator[int]:
    """The stream types in a table (2.4.4.8); `table` is a packet's payload, its pointer first."""
    end = 1 + 3 + ((table[2] & 0x0F) << 8 | table[3]) - 4
    at = 1 + 12 + ((table[11] & 0x0F) << 8 | table[12])
    while at + 5 <= end:
        yield table[at]
        at += 5 + ((table[at + 3] & 0x0F) << 8 | table[at + 4])


def _with_sound(table: bytes) -> bytes:
    """The table with one stream more."""
    length = (table[2] & 0x0F) << 8 | table[3]
    body = table[1 : 1 + 3 + length - 4]
    body += bytes((_STREAM_TYPE_ADTS, 0xE0 | SOUND_PID >> 8, SOUND_PID & 0xFF, 0xF0, 0))
    length += 5
    body = body[:1] + bytes((body[1] & 0xF0 | length >> 8, length & 0xFF)) + body[3:]
    section = table[:1] + body + _checksum(body).to_bytes(4, "big")
    return section + b"\xff" * (len(table) - len(section))


def _checksum(data: bytes) -> int:
    """CRC-32/MPEG-2."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value


def _adts(format_: AudioFormat, size: int) -> bytes:
    profile = format_.object_type - 1 if format_.object_type <= 4 else 1  # layers are told within
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


def _time(ticks: int) -> bytes:
    return bytes(
        (
            0x21 | ticks >> 29 & 0x0E,
            ticks >> 22 & 0xFF,
            0x01 | ticks >> 14 & 0xFE,
            ticks >> 7 & 0xFF,
            0x01 | ticks << 1 & 0xFE,
        )
    )
