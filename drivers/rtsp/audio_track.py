"""The sound of one connection, on the same time line as its pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from drivers.contract import ProtocolViolation
from drivers.rtsp.audio_clock import LONGEST_LAG_TICKS, AudioClock, PictureTime
from drivers.rtsp.audio_packets import AudioPackets, packets_of
from drivers.rtsp.frames import AudioFormat, EncodedAudio
from drivers.rtsp.sdp import Encoding, Media


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


def audible(media: Iterable[Media]) -> Sound | str:
    """Return the first sound stream that can be recorded; otherwise a sentence that says why there is none."""
    why = "the camera offers no audio"
    for medium in media:
        if medium.kind != "audio":
            continue
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
