"""One track that a viewer has set up: its packets, and the reports that keep it in step with the other."""

from __future__ import annotations

import secrets

from drivers.rtsp.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio, EncodedFrame
from drivers.rtsp.outlets import Outlet
from drivers.rtsp.rtp import Packetizer, SoundPacketizer, sender_report

_REPORT_TICKS = 5 * TICKS_PER_SECOND
_BEGIN_SECONDS = 1_600_000_000
"""What the reports' clock shows at presentation time 0: the same for both tracks, and no moment of the world's."""


class Track:
    """Pictures, or with `sound` that. Belongs to the loop."""

    def __init__(self, *, outlet: Outlet, sound: AudioFormat | None) -> None:
        self._outlet = outlet
        self._sound = sound
        self._ssrc = secrets.randbits(32)
        first = {"ssrc": self._ssrc, "sequence": secrets.randbits(16), "timestamp": secrets.randbits(32)}
        self._pictures = Packetizer(**first)
        self._sounds = SoundPacketizer(**first, rate=8_000 if sound is None else sound.rate)
        self._packets = 0
        self._octets = 0
        self._reported: int | None = None

    @property
    def next_sequence(self) -> int:
        """The sequence number of the packet that comes next."""
        return self._pictures.next_sequence if self._sound is None else self._sounds.next_sequence

    async def send(self, item: EncodedFrame | EncodedAudio) -> None:
        """Send one of its kind; of sound of another format than was set up nothing is sent."""
        if isinstance(item, EncodedFrame):
            packets, timestamp = self._pictures.packets(item), self._pictures.timestamp(item.pts)
        elif item.format == self._sound:
            packets, timestamp = self._sounds.packets(item), self._sounds.timestamp(item.pts)
        else:
            return
        if self._reported is None or abs(item.pts - self._reported) >= _REPORT_TICKS:
            self._reported = item.pts
            self._outlet.report(
                sender_report(
                    ssrc=self._ssrc,
                    timestamp=timestamp,
                    seconds=_BEGIN_SECONDS + item.pts / TICKS_PER_SECOND,
                    packets=self._packets,
                    octets=self._octets,
                )
            )
        await self._outlet.send(packets)
        self._packets += len(packets)
        self._octets += sum(map(len, packets)) - 12 * len(packets)

    def close(self) -> None:
        """Nothing follows."""
        self._outlet.close()
