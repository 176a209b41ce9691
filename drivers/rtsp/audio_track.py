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
