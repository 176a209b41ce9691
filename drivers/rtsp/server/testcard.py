"""A moving test picture with a running time code, encoded as by a camera, for demonstrations and tests.

Only a bar and the digits change, because the still parts of a picture cost the encoder almost nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from drivers.contract import DeviceFault
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame
from drivers.rtsp.server.fanout import Fanout

WIDTH, HEIGHT = 5, 7

_ROWS = {
    "0": "0E11131519110E",
    "1": "040C040404040E",
    "2": "0E11010204081F",
    "3": "1F02040201110E",
    "4": "02060A121F0202",
    "5": "1F101E0101110E",
    "6": "0608101E11110E",
    "7": "1F010204080808",
    "8": "0E11110E11110E",
    "9": "0E11110F01020C",
    "A": "0E11111F111111",
    "B": "1E11111E11111E",
    "C": "0E11101010110E",
    "D": "1C12111111121C",
    "E": "1F10101E10101F",
    "F": "1F10101E101010",
    "G": "0E11101711110F",
    "H": "1111111F111111",
    "I": "0E04040404040E",
    "J": "0702020202120C",
    "K": "11121418141211",
    "L": "1010101010101F",
    "M": "111B1515111111",
    "N": "11111915131111",
    "O": "0E11111111110E",
    "P": "1E11111E101010",
    "Q": "0E11111115120D",
    "R": "1E11111E141211",
    "S": "0F10100E01011E",
    "T": "1F040404040404",
    "U": "1111111111110E",
    "V": "11111111110A04",
    "W": "1111111515150A",
    "X": "11110A040A1111",
    "Y": "1111110A040404",
    "Z": "1F01020408101F",
    ":": "000C0C000C0C00",
    ".": "00000000000C0C",
    "-": "0000001F000000",
    "/": "00010204081000",
    " ": "00000000000000",
}

_BLACK, _WHITE, _BAR = 16, 235, 180
_STRIPES = ((180, 128, 128), (162, 44, 142), (131, 156, 44), (112, 72, 58), (84, 184, 198), (65, 100, 212))
_BAR_WIDTH = 16


def rows(character: str) -> tuple[int, ...]:
    """Return a character's dots: seven rows of five bits, the leftmost dot in the highest bit.

    Small letters become capitals, and unknown characters a dash.
    """
    return tuple(bytes.fromhex(_ROWS.get(character.upper(), _ROWS["-"])))


class TestCard:
    """The source of one test picture. `encode` blocks and has one caller at a time; `run` feeds a fan-out in real time.

    Args:
        name: the name shown in the picture, up to 24 characters.
        time_code: a function called for each frame that returns the text below the name, e.g. `12:34:56.7`. What does
            not fit into the width is cut off.
        width: the width in pixels, a multiple of 32.
        height: the height in pixels, an even number.
        rate: frames per second.
        keyframe_seconds: the interval between two keyframes, rounded up to whole frames.
        monotonic: the clock that paces and stamps frames.
    """

    def __init__(
        self,
        *,
        name: str,
        time_code: Callable[[], str],
        width: int = 640,
        height: int = 360,
        rate: Fraction = Fraction(25, 2),
        keyframe_seconds: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._time_code = time_code
        self._width = width
        self._height = height
        self._rate = rate
        self._keyframe_ticks = round(keyframe_seconds * TICKS_PER_SECOND)
        self._monotonic = monotonic
        self._index = 0
        self._encoder: VideoCodecContext | None = None
        self._shown = ""
        self._bar_at = 0
        self._canvas = _Canvas(width=width, height=height)
        self._canvas.stripes()
        self._canvas.text(name[:24], x=24, y=height // 8, scale=max(1, width // 320) + 1)

    def encode(self) -> list[EncodedFrame]:
        """Draw and encode the next frame. No frame refers to a later one."""
        if self._encoder is None:
            self._encoder = _encoder(self._width, self._height, self._rate, self._keyframe_ticks)
        self._draw()
        frame = VideoFrame(self._width, self._height, "yuv420p")
        self._canvas.copy_to(frame)
        frame.pts = self._index
        frame.time_base = 1 / self._rate
        self._index += 1
        return list(self._frames(self._encoder, frame))

    async def run(self, feed: Fanout) -> None:
        """Publish frames at the frame rate until cancelled. Frames are encoded in a thread."""
        begun = self._monotonic() - float(self._index / self._rate)
        while True:
            for frame in await asyncio.to_thread(self.encode):
                feed.publish(frame)
            late = self._monotonic() - begun - float(self._index / self._rate)
            if late > 1.0:
                begun += late
            await asyncio.sleep(max(0.0, -late))

    def _frames(self, encoder: VideoCodecContext, frame: VideoFrame) -> Iterator[EncodedFrame]:
        per_frame = TICKS_PER_SECOND / self._rate
        for packet in encoder.encode(frame):
            pts = int((packet.pts or 0) * per_frame)
            yield EncodedFrame(bytes(packet), pts, pts, packet.is_keyframe, self._monotonic())

    def _draw(self) -> None:
        scale = max(1, self._width // 160)
        top = self._height - 2 * HEIGHT * scale
        text = self._time_code()[: (self._width - 48) // ((WIDTH + 1) * scale)]
        for at, character in enumerate(text):
            if at >= len(self._shown) or self._shown[at] != character:
                self._canvas.text(character, x=24 + at * (WIDTH + 1) * scale, y=top, scale=scale)
        self._shown = text
        self._canvas.restore(self._bar_at, _BAR_WIDTH)
        self._bar_at = self._index * 8 % (self._width - _BAR_WIDTH)
        self._canvas.bar(self._bar_at, _BAR_WIDTH)


def _encoder(width: int, height: int, rate: Fraction, keyframe_ticks: int) -> VideoCodecContext:
    encoder = av.CodecContext.create("libx264", "w")
    if not isinstance(encoder, VideoCodecContext):
        raise DeviceFault("this build of FFmpeg has no H.264 encoder")
    encoder.width, encoder.height = width, height
    encoder.pix_fmt = "yuv420p"
    encoder.time_base = 1 / rate
    encoder.framerate = rate
    encoder.gop_size = max(1, math.ceil(rate * keyframe_ticks / TICKS_PER_SECOND))
    encoder.max_b_frames = 0
    encoder.thread_count = 1
    encoder.options = {"preset": "ultrafast", "tune": "zerolatency", "x264-params": "scenecut=0:repeat-headers=1"}
    return encoder


class _Canvas:
    """The three planes of a 4:2:0 picture. After `stripes`, only the brightness plane changes."""

    def __init__(self, *, width: int, height: int) -> None:
        self._width = width
        self._height = height
        self._planes = [bytearray(width * height), *(bytearray(width * height // 4) for _ in range(2))]
        self._band = range(height // 2 - height // 16, height // 2 + height // 16)
        self._still = b""

    def stripes(self) -> None:
        """Draw colour bars, and a dark band at the bottom for the time code."""
        for plane in range(3):
            width = self._width if plane == 0 else self._width // 2
            rows = self._height if plane == 0 else self._height // 2
            line = b"".join(
                bytes((_STRIPES[min(x * len(_STRIPES) // width, len(_STRIPES) - 1)][plane],)) for x in range(width)
            )
            foot = bytes((_BLACK if plane == 0 else 128,)) * width
            dark = rows * 3 // 4
            self._planes[plane][:] = line * dark + foot * (rows - dark)
        self._still = bytes(self._planes[0][: self._width])

    def text(self, text: str, *, x: int, y: int, scale: int) -> None:
        """Draw white on black, each dot `scale` pixels square."""
        for at, character in enumerate(text):
            left = x + at * (WIDTH + 1) * scale
            for row, bits in enumerate(rows(character)):
                line = (
                    b"".join(
                        bytes((_WHITE if bits >> (WIDTH - 1 - dot) & 1 else _BLACK,)) * scale for dot in range(WIDTH)
                    )
                    + bytes((_BLACK,)) * scale
                )
                for down in range(scale):
                    start = (y + row * scale + down) * self._width + left
                    self._planes[0][start : start + len(line)] = line

    def bar(self, x: int, width: int) -> None:
        """Draw the moving bar at half the picture's height."""
        for row in self._band:
            start = row * self._width + x
            self._planes[0][start : start + width] = bytes((_BAR if row % 2 else _WHITE,)) * width

    def restore(self, x: int, width: int) -> None:
        """Restore the colour bars where the moving bar was."""
        for row in self._band:
            start = row * self._width + x
            self._planes[0][start : start + width] = self._still[x : x + width]

    def copy_to(self, frame: VideoFrame) -> None:
        """Copy the planes into a frame, whose lines may be padded."""
        for plane, pixels in zip(frame.planes, self._planes, strict=True):
            width = plane.width
            if plane.line_size == width:
                plane.update(bytes(pixels))
                continue
            padding = bytes(plane.line_size - width)
            plane.update(b"".join(pixels[at : at + width] + padding for at in range(0, len(pixels), width)))
