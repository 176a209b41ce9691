"""Encoding of G.711 and Opus as AAC, which players support. It takes time, so it belongs in a reading thread."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
import av.error
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from drivers.contract import DeviceFault
from drivers.rtsp.frames import TICKS_PER_SECOND, AudioCodec, AudioFormat, EncodedAudio

_BITS_OF_TELEPHONE = 32_000
_BITS_OF_OPUS = 64_000
_LEAST_RATE = 32_000
"""The least sample rate. At lower rates an AAC unit lasts so long that sound would begin far from a clip's begin."""
_DECODERS = {AudioCodec.PCMU: "pcm_mulaw", AudioCodec.PCMA: "pcm_alaw", AudioCodec.OPUS: "opus"}
_UNIT = 1024
_FLOAT = 4
_BROKEN_TICKS = TICKS_PER_SECOND // 100
"""A larger gap between two pieces of sound ends the unit that is being filled."""

Decode = Callable[[bytes], bytes]
"""A function that decodes a piece of sound to native floats of one channel."""


class AacEncoder:
    """The encoder of one connection's sound to AAC-LC with one channel, at its own sample rate but at least 32 kHz.

    Raises (by its constructor):
        DeviceFault: this build of FFmpeg lacks the encoder or decoder, or cannot use this rate.
    """

    def __init__(self, format_: AudioFormat) -> None:
        rate = max(format_.rate, _LEAST_RATE)
        self.format = AudioFormat(AudioCodec.AAC, rate, 1)
        self._decode = _decoder(format_, rate)
        self._pending = bytearray()
        self._samples = 0
        self._anchors: deque[tuple[int, int]] = deque()
        encoder = av.CodecContext.create("aac", "w")
        if not isinstance(encoder, AudioCodecContext):
            raise DeviceFault("this build of FFmpeg has no AAC encoder")
        encoder.sample_rate = rate
        encoder.layout = "mono"
        encoder.format = "fltp"
        encoder.bit_rate = _BITS_OF_OPUS if format_.codec is AudioCodec.OPUS else _BITS_OF_TELEPHONE
        encoder.time_base = Fraction(1, rate)
        try:
            encoder.open()
        except av.FFmpegError as error:
            raise DeviceFault(f"sound of {rate} samples a second cannot be made AAC") from error
        self._encoder = encoder

    def encode(self, sound: EncodedAudio) -> Iterator[EncodedAudio]:
        """Iterate over the AAC units that this piece completes, mostly none or one."""
        if not self._anchors or abs(sound.pts - self._pending_until()) > _BROKEN_TICKS:
            if self._pending:
                yield from self._encoded(bytes(_UNIT * _FLOAT - len(self._pending)), sound.arrived)
            self._anchors.append((self._samples, sound.pts))
        yield from self._encoded(self._decode(sound.data), sound.arrived)

    def _pending_until(self) -> int:
        """Return when the sound taken so far ends, in ticks.

        It follows from the samples, because a decoder may give more or fewer than the times of the pieces suggest.
        """
        at, pts = self._anchors[-1]
        return pts + (self._samples - at) * TICKS_PER_SECOND // self.format.rate

    def _encoded(self, samples: bytes, arrived: float) -> Iterator[EncodedAudio]:
        self._pending += samples
        self._samples += len(samples) // _FLOAT
        while len(self._pending) >= _UNIT * _FLOAT:
            frame = AudioFrame("fltp", "mono", _UNIT)
            frame.sample_rate = self.format.rate
            frame.planes[0].update(bytes(self._pending[: _UNIT * _FLOAT]))
            frame.pts = self._samples - len(self._pending) // _FLOAT
            frame.time_base = Fraction(1, self.format.rate)
            del self._pending[: _UNIT * _FLOAT]
            for packet in self._encoder.encode(frame):
                yield EncodedAudio(bytes(packet), self._pts(packet.pts or 0), arrived, self.format)

    def _pts(self, sample: int) -> int:
        while len(self._anchors) > 1 and self._anchors[1][0] <= sample:
            self._anchors.popleft()
        at, pts = self._anchors[0]
        return pts + (sample - at) * TICKS_PER_SECOND // self.format.rate


def _decoder(format_: AudioFormat, rate: int) -> Decode:
    """Return a function that decodes sound of this format to `rate` samples a second. Raises DeviceFault."""
    decoder = av.CodecContext.create(_DECODERS[format_.codec], "r")
    if not isinstance(decoder, AudioCodecContext):
        raise DeviceFault(f"this build of FFmpeg cannot decode {format_.codec.value}")
    decoder.sample_rate = format_.rate
    decoder.layout = "stereo" if format_.channels == 2 else "mono"
    one_channel = AudioResampler(format="flt", layout="mono", rate=rate)

    def decode(data: bytes) -> bytes:
        samples = bytearray()
        with contextlib.suppress(av.error.InvalidDataError):  # skip a damaged piece
            for frame in decoder.decode(av.Packet(data)):
                for each in one_channel.resample(frame):
                    samples += bytes(each.planes[0])[: each.samples * _FLOAT]
        return bytes(samples)

    return decode
