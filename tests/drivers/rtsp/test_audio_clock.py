"""Sound of cameras whose reports do not place it among the pictures: it belongs to the picture that it comes with."""

from __future__ import annotations

import asyncio
from contextlib import closing
from itertools import chain, islice

import pytest
from hostile_camera import TICKS, HostileCamera, Script, Sound, film

from drivers.rtsp.audio_clock import AudioClock, PictureTime
from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.frames import EncodedAudio, EncodedFrame

MOST_TICKS = 40 * 90
"""40 ms: what nobody notices."""
AS_A_RECORDER = 65_536
"""Bytes that a recorder gathers before it reads, for fewer wakes."""


def read(url, count):
    with closing(RtspSource(url=url, audio=True)) as source:
        source.open()
        source.gather(AS_A_RECORDER)
        return list(islice(chain.from_iterable(source.batches()), count))


@pytest.mark.parametrize(
    "reports",
    [{}, {"reports": True, "sound_clock": 5_400.0}],
    ids=["no reports", "clocks an hour and a half apart"],
)
async def test_sound_is_where_the_camera_sent_it(reports):
    pictures = film(frames=200, gop=25)
    heard = Sound("pcmu", 8_000, 160, "", tuple(number.to_bytes(2) * 80 for number in range(500)))
    places = {unit: number for number, unit in enumerate(heard.units)}
    async with HostileCamera(Script(film=pictures, sound=heard, **reports)) as camera:
        found = await asyncio.gather(*(asyncio.to_thread(read, camera.url(), 110) for _ in range(6)))
    for received in found:
        frames = [one for one in received if isinstance(one, EncodedFrame)]
        begin = next(number for number, one in enumerate(pictures) if one.data[-64:] == frames[0].data[-64:])
        of_pictures = frames[0].pts - begin * TICKS
        pieces = [one for one in received if isinstance(one, EncodedAudio) and one.data in places]
        assert len(pieces) > 40
        step = heard.size * 90_000 / heard.rate
        late = sorted(abs(one.pts - places[one.data] * step - of_pictures) for one in pieces)
        # such sound is placed by its arrival, which a machine with much other work delays now and then
        assert late[len(late) * 9 // 10] < MOST_TICKS, late


def test_a_count_of_sound_that_drifts_is_followed():
    """A microphone's clock that is 200 millionths fast is 120 ms ahead after ten minutes."""
    clock = AudioClock(rate=8_000)
    for number in range(30_000):
        seconds = number * 0.02
        picture = PictureTime(0, 90_000, int(seconds / 0.04) * 3_600, int(seconds / 0.04) * 0.04)
        at = clock.pts(int(number * 160 * 1.0002), seconds, picture)
        assert abs(at - seconds * 90_000) < MOST_TICKS, seconds
