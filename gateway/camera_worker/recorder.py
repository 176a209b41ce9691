"""The recording of one camera: a reading thread, a bounded queue, and a writing thread that owns all the state."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from drivers.contract import MonotonicSeconds, ProtocolViolation
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedAudio, EncodedFrame, Entry
from drivers.rtsp.video_track import Silence
from gateway.camera_worker.frame_queue import (
    CameraConnected,
    CameraLost,
    Control,
    FootagePinned,
    FrameQueue,
    FramesDropped,
    PartsWanted,
    QueueItem,
    RecordingStopped,
    WritingAllowed,
)
from gateway.camera_worker.live_feed import LiveFeed
from gateway.camera_worker.pre_roll import PreRoll, ToDisk
from gateway.camera_worker.reader import CameraReader
from gateway.camera_worker.salvage import salvage
from gateway.camera_worker.segment_file import DiskFailed
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.footage import (
    CameraCondition,
    CameraReported,
    GapReason,
    PartWritten,
    Pin,
    SegmentFinished,
    StreamFault,
    WorkerCamera,
)
from gateway.runtime.clock import Clock, Stamp, boot_id, offset_of

log = structlog.get_logger(__name__)

_REFRESH_SECONDS = 2.0
_TICK_SECONDS = 1.0
_FIRST_DISK_WAIT = 1.0
_LONGEST_DISK_WAIT = 30.0
_LONGEST_RING_WAIT = 5.0
_HUNG_SECONDS = 10.0
_DISK_HUNG_SECONDS = 5.0
"""A step that takes longer was held up by the disk, which is blamed for frames dropped then and shortly after."""
_DISK_BLAMED_SECONDS = 60.0
_CLOCK_READINGS = 5
_SAME_MOMENT_SECONDS = 0.01
_FAULT_OF = {
    GapReason.PACKETS: StreamFault.PACKETS_LOST,
    GapReason.CAMERA: StreamFault.LEAVES_OUT,
    GapReason.BACK_PRESSURE: StreamFault.FALLS_BEHIND,
}

_WITHIN_SECONDS = 60.0
_AGAIN = 3
"""Signs within a minute that make a fault. A single one may be a moved cable or a camera whose clock was set."""
_SIGNS = dict.fromkeys(StreamFault, _AGAIN) | {StreamFault.NO_ENTRY_POINTS: 1, StreamFault.OFF_PACE: 1}
"""The number of signs for each fault. One is enough for what shows itself only after a while."""
QUIET_SECONDS = 30.0
"""A fault is over after this long without a sign. Signs that come evenly, three a minute, are closer together, so that
the fault is reported once and stays."""


@dataclass(frozen=True, slots=True)
class RecorderStart:
    """The start of a recorder.

    Attributes:
        salvage_first: whether to salvage the part files of an earlier worker before anything is written. This waits
            until `may_write` is True, because another disk may be mounted until then.
        may_write: whether the disk may be written.
    """

    salvage_first: bool
    may_write: bool = True


class StreamFaults:
    """The present faults of one camera's stream. Instants come with each call."""

    def __init__(self) -> None:
        self._signs = {fault: deque[MonotonicSeconds](maxlen=count) for fault, count in _SIGNS.items()}
        self._present: set[StreamFault] = set()

    def sign(self, fault: StreamFault, now: MonotonicSeconds) -> None:
        """Note a sign of a fault."""
        signs = self._signs[fault]
        signs.append(now)
        if len(signs) == signs.maxlen and now - signs[0] <= _WITHIN_SECONDS:
            self._present.add(fault)

    def present(self, now: MonotonicSeconds) -> tuple[StreamFault, ...]:
        """Return the present faults, in the order of `StreamFault`."""
        if not self._present:
            return ()
        self._present = {fault for fault in self._present if now - self._signs[fault][-1] < QUIET_SECONDS}
        return tuple(fault for fault in StreamFault if fault in self._present)


class CameraRecorder:
    """The recorder of one camera, from `start` until `stop`. It calls `report` on its own writing thread.

    A camera or disk that hangs holds up only this recorder's threads.
    """

    def __init__(
        self,
        *,
        camera: WorkerCamera,
        media: Path,
        clock: Clock,
        reader: Callable[..., CameraReader],
        live: LiveFeed | None,
        report: Callable[[SegmentFinished | PartWritten | CameraReported], None],
        start: RecorderStart,
        marker: str = "",
    ) -> None:
        """`reader` makes the camera's reader."""
        self.camera = camera
        self._media = media
        self._clock = clock
        self._report = report
        self._to_salvage = start.salvage_first
        self._may_write = start.may_write
        self._marker = marker
        self._pre_roll = (
            PreRoll(media=media, seconds=camera.pre_roll_seconds, finished=self._segment_finished)
            if camera.record == "events"
            else None
        )
        self._queue = FrameQueue()
        self._live = live
        self._parts_until = float("-inf")
        self._reader = reader(camera=camera, url=camera.url, sink=self._queue, live=live, audio=camera.audio)
        self._thread = threading.Thread(target=self._run, name=f"camera-{camera.camera_id}-write", daemon=True)
        self._condition = CameraCondition.STARTING
        self._detail = ""
        self._silent = ""
        self._arrived = Stamp(0, trusted=False)
        self._arrived_at = float("-inf")
        self._faults = StreamFaults()
        self._faults_reported: tuple[StreamFault, ...] = ()
        self._pace = 1.0
        self._why = GapReason.NONE
        self._frames = 0
        self._dropped = 0
        self._connections = 0
        self._bytes_since_report = 0
        self._reported_at = clock.monotonic()
        self._silence = Silence(clock.monotonic())
        self._now, self._wall = self._both_clocks()
        self._disk_failures = 0
        self._disk_retry_at = 0.0
        self._disk_hung_at = float("-inf")

    def start(self) -> None:
        """Start both threads, which connect and record."""
        self._thread.start()
        self._reader.start()

    def pin(self, pins: tuple[Pin, ...]) -> None:
        """Replace the pins of a camera that is recorded for events only; no effect on others."""
        if self.camera.record == "events":
            self._queue.put(FootagePinned(pins))

    def allow(self, may_write: bool) -> None:  # noqa: FBT001  # yes or no
        """Allow or forbid writing to the disk for a camera that is recorded for events only; no effect on others.

        While it is forbidden, footage waits in memory.
        """
        if self.camera.record == "events":
            self._queue.put(WritingAllowed(may_write))

    def want_parts(self, *, part_seconds: float, longest_seconds: float, seconds: float) -> None:
        """Report parts of about `part_seconds` for some seconds; no effect on a camera recorded for events only.

        Until then the camera is read, and its frames are written, as they come, into segments below `longest_seconds`.
        """
        if self.camera.record != "events":
            until = self._clock.monotonic() + seconds
            self._queue.put(PartsWanted(part_seconds=part_seconds, longest_seconds=longest_seconds, until=until))

    def stop(self) -> None:
        """Have the recording end soon, with its open segment made durable. Returns at once; see `join`."""
        self._reader.stop()
        self._queue.put(RecordingStopped())

    def join(self, timeout: float) -> bool:
        """Wait for the writing thread to end; return whether it did within `timeout` seconds. Blocking."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def state(self) -> CameraReported:
        """Return the camera's condition and figures; callable from any thread."""
        return CameraReported(
            camera_id=self.camera.camera_id,
            condition=self._condition,
            detail=self._detail,
            why=self._why,
            faults=self._faults_reported,
            pace=self._pace,
            frames=self._frames,
            dropped=self._dropped + self._queue.dropped,
            reconnects=max(0, self._connections - 1),
        )

    def _run(self) -> None:
        gap = GapReason.STARTED
        if self._may_write and self._salvage():
            gap = GapReason.WORKER
        segmenter = Segmenter(
            camera_id=self.camera.camera_id,
            media=self._media,
            segment_seconds=self.camera.segment_seconds,
            part_written=self._report,
            gap=gap,
            shelf=self._pre_roll or ToDisk(media=self._media, finished=self._segment_finished),
            marker=self._marker,
            boot_id=boot_id(),
        )
        self._set(CameraCondition.STARTING, "connecting")
        while True:
            items = self._queue.take(_TICK_SECONDS)
            began = self._clock.monotonic()
            self._now, self._wall = self._both_clocks()
            if self._record(segmenter, items):
                return
            if segmenter.part_ticks and self._clock.monotonic() >= self._parts_until:
                self._hurry(segmenter, part_seconds=0.0, longest_seconds=0.0)
            self._mind_time(began, received=bool(items))
            if self._pre_roll is not None:
                self._mind_disk(self._pre_roll)
            self._refresh()

    def _salvage(self) -> bool:
        """Salvage an earlier worker's part files, once; return whether there were any."""
        if not self._to_salvage:
            return False
        self._to_salvage = False
        camera_id = self.camera.camera_id
        found = any((self._media / str(camera_id)).glob("*/*.part"))
        for segment in salvage(self._media, camera_id, offset=offset_of(self._clock, boot_id())):
            self._report(segment)
        return found

    def _record(self, segmenter: Segmenter, items: Sequence[QueueItem]) -> bool:
        """Handle items that waited together, and write their frames; return True after the last one of all."""
        for item in items:
            try:
                if isinstance(item, EncodedFrame):
                    self._frame(segmenter, item)
                elif self._take(segmenter, item):
                    return True
            except DiskFailed as error:
                self._disk_failed(error)
                if isinstance(item, RecordingStopped):
                    return True
            except ProtocolViolation as error:
                log.warning("camera_frame_refused", camera_id=self.camera.camera_id, error=str(error))
                self._dropped += 1
        try:
            segmenter.flush()
        except DiskFailed as error:
            self._disk_failed(error)
        return False

    def _take(self, segmenter: Segmenter, item: EncodedAudio | FramesDropped | Control) -> bool:
        """Handle one item that is no frame; return True after the last one."""
        match item:
            case EncodedAudio():
                if self._takes_frames() and segmenter.push_sound(item):
                    self._bytes_since_report += len(item.data)
            case CameraConnected(announced=announced, sound=sound, why_silent=why_silent):
                self._connections += 1
                self._silent = f"its sound is not recorded: {why_silent}" if why_silent else ""
                segmenter.connect(announced, sound)
            case CameraLost(condition=condition, detail=detail, gap=gap):
                try:
                    segmenter.disconnect(gap)
                finally:
                    # after the last segment, so that the gateway has all footage before it hears of the loss
                    self._set(condition, detail, gap)
            case FramesDropped(gap=gap):
                gap = self._why_dropped(gap)
                if gap in _FAULT_OF:
                    self._faults.sign(_FAULT_OF[gap], self._clock.monotonic())
                segmenter.lose(gap)
            case FootagePinned() | WritingAllowed():
                self._tell_ring(item)
            case PartsWanted(part_seconds=part_seconds, longest_seconds=longest_seconds, until=until):
                self._parts_until = until
                self._hurry(segmenter, part_seconds=part_seconds, longest_seconds=longest_seconds)
            case RecordingStopped():
                segmenter.disconnect(GapReason.NONE)
                self._tell_ring(item)
                return True
        return False

    def _hurry(self, segmenter: Segmenter, *, part_seconds: float, longest_seconds: float) -> None:
        """Read, write and report parts of this duration as frames come; with 0, in larger pieces and without parts."""
        segmenter.part_ticks = int(part_seconds * TICKS_PER_SECOND)
        segmenter.longest_ticks = int(longest_seconds * TICKS_PER_SECOND)
        self._queue.hurried = part_seconds > 0
        if self._live is not None:
            self._live.hurried = part_seconds > 0

    def _mind_time(self, began: float, *, received: bool) -> None:
        """Detect a disk that hangs, by how long the last step took, because a hanging disk gives no error.

        While it hung, no frame could be taken, so the camera must not count as silent for that time.
        """
        now = self._clock.monotonic()
        hung = now - began >= _DISK_HUNG_SECONDS
        if hung:
            log.warning("media_folder_hung", camera_id=self.camera.camera_id, seconds=round(now - began, 1))
            self._disk_hung_at = now
        if hung:
            self._silence = Silence(now)
        elif received:
            self._silence.heard(now)

    def _why_dropped(self, gap: GapReason) -> GapReason:
        hung = self._clock.monotonic() - self._disk_hung_at < _DISK_BLAMED_SECONDS
        return GapReason.DISK if hung and gap is GapReason.BACK_PRESSURE else gap

    def _tell_ring(self, item: FootagePinned | WritingAllowed | RecordingStopped) -> None:
        if self._pre_roll is None:
            return
        match item:
            case FootagePinned(pins=pins):
                self._pre_roll.pin(pins)
            case WritingAllowed(may_write=may_write):
                if may_write:
                    self._salvage()
                self._pre_roll.allow(may_write)
            case RecordingStopped():
                self._pre_roll.retry()  # the last chance to write pinned footage that is still in memory

    def _frame(self, segmenter: Segmenter, frame: EncodedFrame) -> None:
        if self._disk_failures and not self._takes_frames():
            self._dropped += 1
            return
        if frame.arrived != self._arrived_at:  # frames that came together have one time of arrival
            self._arrived_at = frame.arrived
            late = int((self._now - frame.arrived) * 1_000_000)
            self._arrived = Stamp(self._wall.micros - late, self._wall.trusted)
        try:
            recorded = segmenter.push(frame, self._arrived)
        except ProtocolViolation:
            segmenter.disconnect(GapReason.CAMERA)
            raise
        if not recorded:
            self._dropped += 1
            return
        self._frames += 1
        self._bytes_since_report += len(frame.data)
        if frame.jumped or frame.pace != 1.0 or (frame.keyframe and frame.entry is Entry.NONE):
            self._judge(frame)
        if not self._disk_failures:
            self._set(CameraCondition.RECORDING, self._silent)

    def _both_clocks(self) -> tuple[float, Stamp]:
        """Read both clocks at one moment, for all frames that wait together.

        On a busy machine this thread may have to wait between the two readings, which would look like a set clock.
        """
        for _ in range(_CLOCK_READINGS):
            before, wall = self._clock.monotonic(), self._clock.wall()
            if self._clock.monotonic() - before < _SAME_MOMENT_SECONDS:
                break
        return before, wall

    def _judge(self, frame: EncodedFrame) -> None:
        if frame.keyframe and frame.entry is Entry.NONE:
            self._faults.sign(StreamFault.NO_ENTRY_POINTS, frame.arrived)
        if frame.pace != 1.0:
            self._pace = frame.pace
            self._faults.sign(StreamFault.OFF_PACE, frame.arrived)
        if frame.jumped:
            self._faults.sign(StreamFault.TIMES_JUMP, frame.arrived)

    def _segment_finished(self, segment: SegmentFinished) -> None:
        self._disk_failures = 0
        self._report(segment)

    def _takes_frames(self) -> bool:
        """Return whether frames can be stored: always in memory, on a failed disk only after a pause."""
        return self._pre_roll is not None or not self._disk_failures or self._clock.monotonic() >= self._disk_retry_at

    def _mind_disk(self, pre_roll: PreRoll) -> None:
        """Retry with backoff to write pinned footage that failed, while new frames go on into memory."""
        if pre_roll.fault is None:
            self._disk_failures = 0
            if self._condition is CameraCondition.DISK_FAILED:
                self._set(CameraCondition.STARTING, "the media folder takes data again")
            return
        if self._disk_failures and self._clock.monotonic() < self._disk_retry_at:
            return
        if self._disk_failures:
            pre_roll.retry()
        if pre_roll.fault is not None:
            self._disk_failed(pre_roll.fault)

    def _disk_failed(self, error: DiskFailed) -> None:
        self._disk_failures += 1
        longest = _LONGEST_DISK_WAIT if self._pre_roll is None else _LONGEST_RING_WAIT
        wait = min(longest, _FIRST_DISK_WAIT * 2.0 ** min(self._disk_failures - 1, 10))
        self._disk_retry_at = self._clock.monotonic() + wait
        self._set(CameraCondition.DISK_FAILED, f"the media folder takes no data: {error.strerror}")

    def _set(self, condition: CameraCondition, detail: str, why: GapReason = GapReason.NONE) -> None:
        if (condition, detail) == (self._condition, self._detail):
            return
        if condition is not self._condition:
            log.info("camera_condition", camera_id=self.camera.camera_id, condition=condition, detail=detail)
        self._condition, self._detail, self._why = condition, detail, why
        self._report_state(self._clock.monotonic())

    def _refresh(self) -> None:
        now = self._clock.monotonic()
        hopeful = self._condition in (CameraCondition.RECORDING, CameraCondition.STARTING)
        if hopeful and self._silence.is_too_long(now, seconds=self.camera.stall_seconds + _HUNG_SECONDS):
            self._set(CameraCondition.STALLED, "the camera sends nothing that can be recorded, or reading it hangs")
        faults = self._faults.present(now)
        if faults != self._faults_reported or now - self._reported_at >= _REFRESH_SECONDS:
            self._faults_reported = faults
            self._report_state(now)

    def _report_state(self, now: float) -> None:
        elapsed = max(now - self._reported_at, 0.001)
        rate = int(self._bytes_since_report * 8 / elapsed) if elapsed >= 1.0 else 0
        self._reported_at = now
        self._bytes_since_report = 0
        self._report(self.state().model_copy(update={"bits_per_second": rate}))
