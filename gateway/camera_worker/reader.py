"""A camera's reading thread: it connects, passes frames on, and reconnects until it is stopped."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from drivers.backoff import Backoff
from drivers.contract import DeviceFault, DriverError
from drivers.rtsp.client.connection import ReadBuffers
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.errors import (
    AccountRefused,
    CameraRefused,
    CameraStalled,
    CameraUnreachable,
    CodecNotSupported,
)
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
from drivers.rtsp.video_track import FootageLost
from drivers.video_sources import Source, source_at
from gateway.camera_worker.connection_budget import ConnectionBudget
from gateway.camera_worker.frame_queue import CameraConnected, CameraLost
from gateway.camera_worker.live_feed import LiveFeed
from gateway.domain.footage import CameraCondition, GapReason, WorkerCamera
from gateway.runtime.clock import Clock

if TYPE_CHECKING:
    from gateway.camera_worker.aac import AacEncoder

log = structlog.get_logger(__name__)

_RECONNECTS = Backoff(first=0.5, longest=10.0)
_GOOD_SECONDS = 5.0
"""A connection that gave pictures for this long does not count as a failure, so the backoff starts again."""
_MOST_DOUBLINGS = 2
_ACCOUNT_WAIT = 30.0
_LONGEST_ACCOUNT_WAIT = 300.0
GATHER_BYTES = 262_144
"""While nobody watches, a camera is read only when this many bytes have come, or twice a second, to save work."""


class Sink(Protocol):
    """The receiver of what a reading thread reads, for example a `FrameQueue`. No call may block."""

    def put(self, item: CameraConnected | CameraLost) -> None:
        """Take a change of the connection: it is up, or lost."""
        ...

    def put_frames(self, frames: Sequence[EncodedFrame]) -> None:
        """Take the next frames."""
        ...

    def put_sound(self, sound: EncodedAudio) -> None:
        """Take the next piece of AAC."""
        ...

    def put_loss(self, gap: GapReason) -> None:
        """Take the report that frames are missing before the next one, for this reason."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """Parts that all readers of this process share: the clock, the limit on connection attempts, and the buffers."""

    clock: Clock
    budget: ConnectionBudget
    buffers: ReadBuffers


class CameraReader:
    """The reader of one stream of a camera. It passes everything to a sink, and frames also to live viewers.

    After `stop()` the thread ends at once, or when the attempt to connect that is under way has ended.

    Args:
        context: what all readers of this process share.
        camera: the camera.
        url: the stream's URL, with its credentials.
        sink: the receiver of frames, sound and changes of the connection.
        live: the feed of live viewers; None for none.
        audio: whether to read sound too.
        habits: what earlier readers of the stream learned about the camera; None for the first one.
    """

    def __init__(
        self,
        context: ReaderContext,
        *,
        camera: WorkerCamera,
        url: str,
        sink: Sink,
        live: LiveFeed | None,
        audio: bool,
        habits: CameraHabits | None = None,
    ) -> None:
        self._camera = camera
        self._url = url
        self._context = context
        self._habits = habits or CameraHabits()
        self._departures: frozenset[str] = frozenset()
        self._source: Source | None = None
        self._sink = sink
        self._live = live
        self._audio = audio
        self._why_silent = ""
        self._silent = 0
        self._pictures: tuple[float, float] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"camera-{camera.camera_id}-read", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def leave(self) -> None:
        """Have the thread end at the next frame, so that it closes the session properly. Returns at once."""
        self._stopping.set()

    def stop(self) -> None:
        """Have the thread end as soon as possible. Returns at once."""
        self._stopping.set()
        if (source := self._source) is not None:
            source.interrupt()

    def _run(self) -> None:
        failures = refusals = 0
        while self._context.budget.wait_for_turn(self._stopping):
            self._pictures, is_refused = None, False
            try:
                self._read()
            except AccountRefused as error:
                lost, is_refused = _lost(error), True
            except DriverError as error:
                lost = _lost(error)
                is_silent = isinstance(error, CameraStalled) and self._pictures is None
                self._silent = self._silent + 1 if is_silent else 0
            except Exception as error:  # noqa: BLE001  # a fault in reading one camera must not silence it for good
                # the text may hold the camera's URL
                log.error("camera_reading_failed", camera_id=self._camera.camera_id, error=type(error).__name__)  # noqa: TRY400
                lost = CameraLost(CameraCondition.UNREACHABLE, "reading the camera failed", GapReason.WORKER)
            else:
                return
            failures = 1 if self._was_good() else failures + 1
            refusals = refusals + 1 if is_refused else 0
            if self._stopping.is_set():
                return
            if self._live is not None:
                self._live.lost()
            self._sink.put(lost)
            self._stopping.wait(account_wait(refusals) if is_refused else reconnect_wait(failures))

    def _was_good(self) -> bool:
        """Return whether the connection gave pictures for a while."""
        return self._pictures is not None and self._pictures[1] - self._pictures[0] >= _GOOD_SECONDS

    def _read(self) -> None:
        self._source = source_at(
            self._url,
            transport=self._camera.transport,
            audio=self._audio,
            # a camera that sends rarely may have sent nothing yet
            stall_seconds=self._camera.stall_seconds * 2 ** min(self._silent, _MOST_DOUBLINGS),
            habits=self._habits,
            buffers=self._context.buffers,
            monotonic=self._context.clock.monotonic,
        )
        with closing(self._source) as source:
            if self._stopping.is_set():
                return
            announced = source.open()
            self._tell_departures()
            if self._stopping.is_set():
                return
            sound, encoder = self._sound_of(source)
            self._sink.put(CameraConnected(announced, sound, self._why_silent if self._audio else ""))
            if self._live is not None:
                self._live.sound = sound
            gathered = 1
            for batch in source.batches():
                if self._stopping.is_set():
                    return
                wanted = 1 if self._live is not None and self._live.watched else GATHER_BYTES
                if wanted != gathered:
                    gathered = wanted
                    source.gather(wanted)
                self._pass_on(batch, encoder)

    def _tell_departures(self) -> None:
        """Log how the camera departs from the site file or from today's standards, once for each way."""
        habits = self._habits
        found = {"over_tcp": habits.udp_fails, "old_tls": habits.older_tls, "without_sound": habits.ends_at_sound}
        departures = frozenset(name for name, departs in found.items() if departs)
        if new := departures - self._departures:
            log.warning("camera_read_otherwise", camera_id=self._camera.camera_id, how=", ".join(sorted(new)))
        self._departures = departures

    def _pass_on(self, batch: Sequence[EncodedFrame | EncodedAudio | FootageLost], encoder: AacEncoder | None) -> None:
        """Give what came together to the sink and the live viewers, in its order."""
        frames: list[EncodedFrame] = []
        for item in batch:
            if isinstance(item, EncodedFrame):
                frames.append(item)
                continue
            self._pass_frames(frames)
            frames = []
            if isinstance(item, FootageLost):
                self._sink.put_loss(GapReason.PACKETS if item.by_network else GapReason.CAMERA)
                continue
            for each in encoder.encode(item) if encoder else (item,):
                self._sink.put_sound(each)
                if self._live is not None:
                    self._live.offer_sound(each)
        self._pass_frames(frames)

    def _pass_frames(self, frames: Sequence[EncodedFrame]) -> None:
        if not frames:
            return
        self._pictures = (self._pictures[0] if self._pictures else frames[0].arrived, frames[-1].arrived)
        self._sink.put_frames(frames)
        if self._live is not None:
            self._live.offer(frames)

    def _sound_of(self, source: Source) -> tuple[AudioFormat | None, AacEncoder | None]:
        """Return the sound format for the sink, and an encoder where the camera's sound is not AAC."""
        sound, why, encoder = source.sound, source.why_silent, None
        if sound is not None and sound.codec is not AudioCodec.AAC:
            try:
                encoder = _aac_encoder(sound)
                sound = encoder.format
            except DeviceFault as error:  # record the pictures without sound
                sound, why = None, str(error)
        if self._audio and why and why != self._why_silent:
            log.warning("camera_has_no_sound", camera_id=self._camera.camera_id, why=why)
        self._why_silent = why
        return sound, encoder


def _aac_encoder(sound: AudioFormat) -> AacEncoder:
    """Make an encoder. libav takes as much memory as all the rest, so it is imported only where a camera needs it."""
    from gateway.camera_worker.aac import AacEncoder  # noqa: PLC0415

    return AacEncoder(sound)


def reconnect_wait(failures: int) -> float:
    """Return the backoff in seconds after `failures` in a row: from 0.5 doubling to 10, less up to half as jitter."""
    return _RECONNECTS.wait(failures)


def account_wait(refusals: int) -> float:
    """Return the backoff in seconds after a camera refused the account `refusals` times in a row.

    It doubles from 30 to 300, plus up to half of it as jitter.
    """
    full = min(_LONGEST_ACCOUNT_WAIT, _ACCOUNT_WAIT * 2.0 ** min(refusals - 1, 10))
    return full * (1.0 + random.random() / 2)  # noqa: S311  # spreads load; guards nothing


def _lost(error: DriverError) -> CameraLost:
    match error:
        case CodecNotSupported():
            return CameraLost(CameraCondition.UNSUPPORTED, str(error), GapReason.UNSUPPORTED)
        case CameraRefused():
            return CameraLost(CameraCondition.REFUSED, str(error), GapReason.REFUSED)
        case CameraStalled():
            return CameraLost(CameraCondition.STALLED, str(error), GapReason.CAMERA)
        case CameraUnreachable():
            return CameraLost(CameraCondition.UNREACHABLE, str(error), GapReason.NETWORK)
        case _:
            return CameraLost(CameraCondition.UNREACHABLE, str(error), GapReason.CAMERA)
