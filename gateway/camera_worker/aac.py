"""Sound that is not AAC into AAC, which players take: G.711 and Opus. It takes its time: belongs in a camera's reading
thread.
"""

from __future__ import annotations

import contextlib
import struct
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
import av.error
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from drivers.camera.frames import TICKS_PER_SECOND, AudioCodec, AudioFormat, EncodedAudio
from drivers.contract import DeviceFault

_BITS_PER_SECOND = 32_000
_BITS_OF_OPUS = 64_000
_UNIT = 1024
_FLOAT = 4
_BROKEN_TICKS = TICKS_PER_SECOND // 100
"""Sound that does not follow within it does not belong to what is held."""

Decode = Callable[[bytes], bytes]
"""Makes a piece of sound native floats, one channel."""


class AacEncoder:
    """One connection's sound into AAC-LC of one channel at the same rate.

    Raises (by its constructor):
        DeviceFault: this build has no such encoder or decoder, or not for this rate.
    """

    def __init__(self, format_: AudioFormat) -> None:
        self.format = AudioFormat(AudioCodec.AAC, format_.rate, 1)
        self._decode = _opus(format_.rate) if format_.codec is AudioCodec.OPUS else _telephone(format_.codec)
        self._held = bytearray()
        self._samples = 0
        self._anchors: deque[tuple[int, int]] = deque()
        self._expected: int | None = None
        encoder = av.CodecContext.create("aac", "w")
        if not isinstance(encoder, AudioCodecContext):
            raise DeviceFault("this build of FFmpeg has no AAC encoder")
        encoder.sample_rate = format_.rate
        encoder.layout = "mono"
        encoder.format = "fltp"
        encoder.bit_rate = _BITS_OF_OPUS if format_.codec is AudioCodec.OPUS else _BITS_PER_SECOND
        encoder.time_base = Fraction(1, format_.rate)
        try:
            encoder.open()
        except av.FFmpegError as error:
            raise DeviceFault(f"sound of {format_.rate} samples a second cannot be made AAC") from error
        self._encoder = encoder

    def encode(self, sound: EncodedAudio) -> Iterator[EncodedAudio]:
        """The units that are whole with this piece, mostly none or one."""
        if self._expected is None or abs(sound.pts - self._expected) > _BROKEN_TICKS:
            if self._held:
                yield from self._encoded(bytes(_UNIT * _FLOAT - len(self._held)), sound.arrived)
            self._anchors.append((self._samples, sound.pts))
        samples = self._decode(sound.data)
        yield from self._encoded(samples, sound.arrived)
        self._expected = sound.pts + len(samples) // _FLOAT * TICKS_PER_SECOND // self.format.rate

    def _encoded(self, samples: bytes, arrived: float) -> Iterator[EncodedAudio]:
        self._held += samples
        self._samples += len(samples) // _FLOAT
        while len(self._held) >= _UNIT * _FLOAT:
            frame = AudioFrame("fltp", "mono", _UNIT)
            frame.sample_rate = self.format.rate
            frame.planes[0].update(bytes(self._held[: _UNIT * _FLOAT]))
            frame.pts = self._samples - len(self._held) // _FLOAT
            frame.time_base = Fraction(1, self.format.rate)
            del self._held[: _UNIT * _FLOAT]
            for packet in self._encoder.encode(frame):
                yield EncodedAudio(bytes(packet), self._pts(packet.pts or 0), arrived, self.format)

    def _pts(self, sample: int) -> int:
        while len(self._anchors) > 1 and self._anchors[1][0] <= sample:
            self._anchors.popleft()
        at, pts = self._anchors[0]
        return pts + (sample - at) * TICKS_PER_SECOND // self.format.rate


def _telephone(codec: AudioCodec) -> Decode:
    table = _mu_law() if codec is AudioCodec.PCMU else _a_law()
    return lambda data: b"".join([table[each] for each in data])


def _opus(rate: int) -> Decode:
    decoder = av.CodecContext.create("opus", "r")
    if not isinstance(decoder, AudioCodecContext):
        raise DeviceFault("this build of FFmpeg has no Opus decoder")
    decoder.sample_rate = rate
    decoder.layout = "mono"
    one_channel = AudioResampler(format="flt", layout="mono", rate=rate)

    def decode(data: bytes) -> bytes:
        samples = bytearray()
        with contextlib.suppress(av.error.InvalidDataError):  # one that is damaged; the next may be whole
            for frame in decoder.decode(av.Packet(data)):
                for each in one_channel.resample(frame):
                    samples += bytes(each.planes[0])[: each.samples * _FLOAT]
        return bytes(samples)

    return decode


def _mu_law() -> tuple[bytes, ...]:
    """Each byte's sample as a native float (ITU-T G.711, table 2)."""
    table = []
    for byte in range(256):
        value = ~byte & 0xFF
        magnitude = ((value & 0x0F) << 3) + 0x84 << (value >> 4 & 7)
        table.append((0x84 - magnitude if value & 0x80 else magnitude - 0x84) / 32768)
    return tuple(struct.pack("=f", each) for each in table)


def _a_law() -> tuple[bytes, ...]:
    """Each byte's sample as a native float (ITU-T G.711, table 1)."""
    table = []
    for byte in range(256):
        value = byte ^ 0x55
        exponent, magnitude = value >> 4 & 7, ((value & 0x0F) << 4) + 8
        if exponent:
            magnitude = magnitude + 0x100 << exponent - 1
        table.append((magnitude if value & 0x80 else -magnitude) / 32768)
    return tuple(struct.pack("=f", each) for each in table)
