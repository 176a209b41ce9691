"""The sound of one connection, on the same time line as its pictures. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from drivers.contract import ProtocolViolation
from drivers.rtsp.audio_clock import LONGEST_LAG_TICKS, AudioClock, PictureTime
from drivers.rtsp.bits import Bits
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio
from drivers.rtsp.rtp_packets import payload_offset
from drivers.rtsp.sdp import Encoding, Media

LARGEST_UNIT = 8_192
"""The greatest size of a piece in bytes; AAC's own limit is 768 for each channel."""
_HEAD = struct.Struct("!BBHII")
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
_G711 = {"PCMU": AudioCodec.PCMU, "PCMA": AudioCodec.PCMA}
_MOST_CHANNELS = 2
_LAYERED = (5, 29)
_MOST_UNITS = 64

Unit = tuple[int, bytes]
"""A piece of sound: its RTP time and its data."""


class AudioPackets(Protocol):
    """A depacketizer of one sound stream. `format` is the format of its pieces."""

    format: AudioFormat

    def push(self, packet: bytes | memoryview) -> list[Unit]:
        """Return the pieces that this packet completes."""
        ...


def packets_of(encoding: Encoding) -> AudioPackets | None:
    """Return a depacketizer for this encoding; None for an encoding that is not recorded.

    Raises:
        ProtocolViolation: the camera's parameters of the encoding are invalid.
    """
    if encoding.name in _G711:
        if encoding.channels > _MOST_CHANNELS:
            raise ProtocolViolation(f"the camera's audio has {encoding.channels} channels")
        return WholePackets(AudioFormat(_G711[encoding.name], encoding.clock, encoding.channels))
    if encoding.name == "OPUS":
        return WholePackets(AudioFormat(AudioCodec.OPUS, encoding.clock, 1))
    if encoding.name == "MPEG4-GENERIC" and encoding.parameters.get("mode", "AAC-hbr").lower().startswith("aac"):
        return AacPackets(encoding)
    return None


class _InOrder:
    """The check for missing packets. Packets come in order, so one that goes back is repeated or begins a new count."""

    def __init__(self) -> None:
        self._sequence: int | None = None
        self._timestamp = 0

    def take(self, packet: bytes | memoryview) -> tuple[int, bytes, bool] | None:
        """Return RTP time, payload, and whether packets before it are missing; None for a packet to drop."""
        at = payload_offset(packet)
        if at is None:
            return None
        _, _, sequence, timestamp, _ = _HEAD.unpack_from(packet)
        ahead = 0 if self._sequence is None else sequence - self._sequence - 1 & 0xFFFF
        if ahead >= 0x8000 and timestamp == self._timestamp:
            return None
        self._sequence, self._timestamp = sequence, timestamp
        end = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
        return (timestamp, bytes(packet[at:end]), ahead > 0) if end > at else None


class WholePackets:
    """The depacketizer of G.711 and Opus, where each packet's payload is one piece of sound."""

    def __init__(self, format_: AudioFormat) -> None:
        self.format = format_
        self._order = _InOrder()

    def push(self, packet: bytes | memoryview) -> list[Unit]:
        """Return the packet's payload as a piece; nothing for a late, empty or too large one."""
        unit = self._order.take(packet)
        return [] if unit is None or len(unit[1]) > LARGEST_UNIT else [(unit[0], unit[1])]


class AacPackets:
    """The depacketizer of AAC. A packet holds whole access units with a header for each, or a fragment of one."""

    def __init__(self, encoding: Encoding) -> None:
        """Raise ProtocolViolation when the encoding's parameters are invalid."""
        given = encoding.parameters
        self.format, samples = _configured(given.get("config", ""))
        self._size_bits = _number(given, "sizelength", 13)
        self._index_bits = _number(given, "indexlength", 3)
        self._delta_bits = _number(given, "indexdeltalength", 3)
        self._step = samples * encoding.clock // self.format.rate
        self._order = _InOrder()
        self._part = bytearray()
        self._wanted = 0

    def push(self, packet: bytes | memoryview) -> list[Unit]:
        """Return the access units that this packet completes."""
        unit = self._order.take(packet)
        if unit is None:
            return []
        timestamp, payload, broken = unit
        sizes = self._sizes(payload)
        if broken or len(sizes) != 1:
            self._part.clear()
        if not sizes:
            return []
        at = 2 + (int.from_bytes(payload[:2], "big") + 7) // 8
        if len(sizes) == 1 and (self._part or sizes[0] > len(payload) - at):
            return self._fragment(timestamp, payload[at:], sizes[0])
        units: list[Unit] = []
        for number, size in enumerate(sizes):
            if not size or at + size > len(payload):
                break
            units.append((timestamp + number * self._step & 0xFFFFFFFF, payload[at : at + size]))
            at += size
        return units

    def _fragment(self, timestamp: int, part: bytes, size: int) -> list[Unit]:
        if self._part and size != self._wanted:
            self._part.clear()
        self._wanted = size
        self._part += part
        if len(self._part) < size:
            return []
        unit = bytes(self._part[:size])
        self._part.clear()
        return [(timestamp, unit)]

    def _sizes(self, payload: bytes) -> list[int]:
        if len(payload) < 4:
            return []
        length = int.from_bytes(payload[:2], "big")
        headers = payload[2 : 2 + (length + 7) // 8]
        if len(headers) * 8 < length:
            return []
        bits = int.from_bytes(headers, "big") >> len(headers) * 8 - length
        sizes: list[int] = []
        left, index = length, self._index_bits
        while left >= self._size_bits + index and len(sizes) < _MOST_UNITS:
            left -= self._size_bits
            size = bits >> left & (1 << self._size_bits) - 1
            left -= index
            index = self._delta_bits
            if size > LARGEST_UNIT:
                return []
            sizes.append(size)
        return sizes


def _configured(config: str) -> tuple[AudioFormat, int]:
    """Read an AudioSpecificConfig in hexadecimal (ISO/IEC 14496-3, 1.6.2.1).

    Return the format, and the number of samples in an access unit. Raises ProtocolViolation.
    """
    try:
        bits = Bits(bytes.fromhex(config))
        kind, rate = bits.bits(5), _rate(bits)
        channels = bits.bits(4)
        object_type = kind
        if kind in _LAYERED:
            _rate(bits)
            kind = bits.bits(5)
        samples = 960 if bits.bits(1) else 1024
    except (ValueError, IndexError):
        raise ProtocolViolation("the camera's AAC configuration makes no sense") from None
    if not 1 <= kind <= 4 or not 1 <= channels <= 7 or rate not in _RATES:
        raise ProtocolViolation("the camera's AAC is of a kind that cannot be recorded")
    return AudioFormat(AudioCodec.AAC, rate, channels, object_type), samples


def _rate(bits: Bits) -> int:
    index = bits.bits(4)
    return bits.bits(24) if index == 15 else _RATES[index]


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name, "")
    number = int(value) if value.isdecimal() else default
    if not 0 <= number <= 16 or (name == "sizelength" and not number):
        raise ProtocolViolation("the camera's AAC parameters make no sense")
    return number


class AudioTrack:
    """The sound of one connection. `packets` is its depacketizer; `rate` is the rate of its RTP clock."""

    def __init__(self, *, packets: AudioPackets, payload_type: int, rate: int) -> None:
        self._packets = packets
        self._payload_type = payload_type
        self._last: int | None = None
        self.clock = AudioClock(rate=rate)

    @property
    def format(self) -> AudioFormat:
        """The format of the sound."""
        return self._packets.format

    def sounds(
        self, packets: Iterable[bytes | memoryview], now: float, picture: PictureTime | None
    ) -> Iterator[EncodedAudio]:
        """Iterate over the pieces of sound that these packets complete; none before the first picture.

        Args:
            packets: RTP packets in order.
            now: when they arrived, in monotonic seconds.
            picture: the picture that came last; None before the first.
        """
        for packet in packets:
            if len(packet) < 2 or packet[1] & 0x7F != self._payload_type:
                continue
            for raw, data in self._packets.push(packet):
                if picture is None:
                    continue
                pts = self.clock.pts(raw, now, picture)
                if self._last is not None and pts <= self._last and self._last - pts < LONGEST_LAG_TICKS:
                    continue  # the clock was corrected backwards a little: drop what would overlap earlier sound
                self._last = pts
                yield EncodedAudio(data, pts, now, self._packets.format)


@dataclass(frozen=True, slots=True)
class Sound:
    """A sound stream that a camera offers and that can be recorded."""

    media: Media
    payload_type: int
    encoding: Encoding
    packets: AudioPackets

    def track(self) -> AudioTrack:
        """Make the track of one connection."""
        return AudioTrack(packets=self.packets, payload_type=self.payload_type, rate=self.encoding.clock)


def audible(media: Iterable[Media]) -> tuple[list[Sound], str]:
    """Return the sound streams that can be recorded, and a sentence that says why, if there is none.

    Those that come from a microphone are first; see `_talks_back`.
    """
    why = "the camera offers no audio"
    offered = list(media)
    of_video = next((medium.direction for medium in offered if medium.kind == "video"), "")
    audios = [medium for medium in offered if medium.kind == "audio" and medium.direction != "inactive"]
    found: list[Sound] = []
    for medium in sorted(audios, key=lambda one: _talks_back(one, of_video)):
        sound = _recordable(medium)
        if isinstance(sound, Sound):
            found.append(sound)
        else:
            why = sound or why
    return found, why


def _recordable(medium: Media) -> Sound | str:
    """Return the first encoding of a medium that can be recorded; otherwise the reason, "" where it has none."""
    why = ""
    for number, encoding in medium.encodings.items():
        try:
            packets = packets_of(encoding)
        except ProtocolViolation as error:
            why = str(error)
            continue
        if packets is not None:
            return Sound(medium, number, encoding, packets)
        why = f"the camera's audio is {encoding.name}, neither AAC nor G.711 nor Opus"
    return why


def _talks_back(sound: Media, of_video: str) -> bool:
    """Return whether a sound stream probably leads to the camera's loudspeaker.

    Directions are those of the camera by RFC 8866, 6.7, but those of the viewer by ONVIF's streaming specification
    (5.3.1, back channel). The pictures tell which of the two a camera means, since it sends them. A sound that seems to
    lead to the loudspeaker is only put behind others.
    """
    from_camera = of_video if of_video in {"sendonly", "recvonly"} else "recvonly"
    return sound.direction in {"sendonly", "recvonly"} and sound.direction != from_camera
