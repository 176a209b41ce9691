"""Frames into MPEG-TS, one muxer for a connection, so that continuity counters and timestamps run on."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import av.error
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream

from drivers.camera.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio, EncodedFrame, VideoCodec
from drivers.contract import ProtocolViolation
from gateway.camera_worker.sound_stream import SoundStream

_TIME_BASE = Fraction(1, TICKS_PER_SECOND)
_MUXED_AS = {VideoCodec.H264: "h264", VideoCodec.H265: "hevc"}


class TransportMuxer:
    """An MPEG-TS muxer whose output is taken after each frame.

    Sound is put between the frames' packets here and not by libavformat, which holds frames back to put streams in
    order: a file could not end before a keyframe then.
    """

    def __init__(self, *, codec: VideoCodec, sound: AudioFormat | None = None) -> None:
        self.codec = codec
        self._sound = None if sound is None else SoundStream(sound)
        self._output = _Collector()
        self._container: OutputContainer = av.open(
            self._output,
            "w",
            format="mpegts",
            options={"mpegts_flags": "pat_pmt_at_frames", "flush_packets": "1"},
        )
        self._stream: Stream = self._container.add_mux_stream(_MUXED_AS[codec], time_base=_TIME_BASE)

    def mux(self, frame: EncodedFrame, data: bytes) -> bytes:
        """The transport packets of one frame; `data` stands for the frame's own.

        Raises:
            ProtocolViolation: the frame cannot be muxed.
        """
        packet = Packet(data)
        packet.stream = self._stream
        packet.time_base = _TIME_BASE
        packet.pts = frame.pts
        packet.dts = frame.dts
        packet.is_keyframe = frame.keyframe
        try:
            self._container.mux_one(packet)
        except av.error.FFmpegError as error:
            raise ProtocolViolation(f"a frame cannot be written as MPEG-TS ({type(error).__name__})") from error
        written = self._output.take()
        return written if self._sound is None else self._sound.announced(written, dts=frame.dts)

    def mux_sound(self, sound: EncodedAudio) -> bytes:
        """The transport packets of a piece of AAC; none before the first frame, or when no sound was agreed on."""
        return b"" if self._sound is None else self._sound.packets(sound)

    def close(self) -> None:
        """End the stream; nothing of it is still held back, since each frame was flushed."""
        self._container.close()


class _Collector(io.RawIOBase):
    """The file that the muxer writes: bytes in memory, so that no disk error arises inside libav."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # libav hands bytes alone
        self._held += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._held)
        self._held.clear()
        return taken
