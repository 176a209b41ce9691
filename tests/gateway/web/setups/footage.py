"""Two seconds of real footage, and recording's face over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from io import FileIO
from pathlib import Path

import av
import pytest

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.footage import CameraCondition, Missing, SegmentFinished
from gateway.domain.passages import CameraEvent
from gateway.domain.viewing import NotShown, ViewOpened, ViewRefusal
from gateway.recording import CameraSnapshot
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.forecast import StorageForecast
from gateway.recording.live_hls import TooFarAhead
from gateway.recording.live_parts import OpenPart
from gateway.recording.playlists import PlaylistReload
from gateway.recording.viewing import Viewing
from gateway.store import Segment, Store
from tests.gateway.web.setups.site import START

CAMERA = CameraSnapshot(
    camera_id=201,
    name="Entry overview",
    condition=CameraCondition.RECORDING,
    detail="",
    since=START,
    last_segment_at=START + 2_000_000,
    bits_per_second=1_843_000,
    reconnects=1,
)


class NewestFootage:
    """Live footage of camera 201: a master playlist, a list of one segment with one part, and these."""

    def __init__(self, files: Footage) -> None:
        self._files = files

    async def master(self, camera_id: int) -> str:
        self._known(camera_id)
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nindex.m3u8\n"

    async def playlist(self, camera_id: int, wanted: PlaylistReload | None = None) -> str:
        self._known(camera_id)
        if wanted is not None and wanted.number > 10:
            raise TooFarAhead("camera 201 will not have that soon; its last segment is 7")
        return (
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n"
            '#EXT-X-PART:DURATION=2.0,URI="7.0.ts",INDEPENDENT=YES\n#EXTINF:2.0,\n7.ts\n'
            '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="8.0.ts"\n'
        )

    async def part(self, camera_id: int, number: int, index: int) -> OpenPart:
        self._known(camera_id)
        if (number, index) != (7, 0):
            raise NotFoundError(f"camera {camera_id} has no part {index} of segment {number} (any more)")
        return OpenPart(self._files.opened, 188, 376)

    async def classic(self, camera_id: int) -> str:
        return (await self.playlist(camera_id)).partition("#EXT-X-PART")[0] + "#EXTINF:2.0,\n7.ts\n"

    def release(self) -> None:
        pass

    async def segment(self, camera_id: int, number: int) -> Path:
        self._known(camera_id)
        if number != 7:
            raise NotFoundError(f"camera {camera_id} has no segment {number} (any more)")
        return self._files.segment

    def _known(self, camera_id: int) -> None:
        if camera_id != 201:
            raise NotFoundError(f"this site has no camera {camera_id}")


class NobodyWatches:
    """Live views of a site whose cameras send nothing."""

    async def expect(self, camera_id: int) -> None:
        pass

    async def open(self, camera_id: int, offer: str, *, address: str) -> ViewOpened:
        raise NotShown(ViewRefusal.NO_SOURCE, "the camera sends no pictures now")

    async def trickle(self, camera_id: int, view: str, *, tags: tuple[str, ...], fragment: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")

    async def look(self, camera_id: int, view: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")

    async def end(self, camera_id: int, view: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")


@dataclass
class FootageOnDisk:
    """Recording's face over three real files."""

    files: Footage
    evidence_files: EvidenceFiles
    store: Store
    forgotten: list[int] = field(default_factory=list)
    camera: CameraSnapshot = CAMERA
    viewing: Viewing = field(default_factory=NobodyWatches)

    def show(self, *, condition: str, detail: str = "") -> None:
        self.camera = replace(self.camera, condition=CameraCondition(condition), detail=detail)

    def cameras(self) -> tuple[CameraSnapshot, ...]:
        return (self.camera,)

    def storage(self) -> StorageForecast:
        return StorageForecast(
            footage_bytes=5_100_000_000, cap_bytes=20_000_000_000, free_bytes=60_000_000_000,
            bytes_per_day=1_650_000_000, full_in_days=9.03, text="5.1 GB, full in 9 days at this rate", short=False,
        )  # fmt: skip

    @property
    def live(self) -> NewestFootage:
        return NewestFootage(self.files)

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        return await self.store.segments.missing(camera_events)

    async def clip(self, camera_event: CameraEvent) -> Path:
        self._available()
        return self.files.clip

    async def parts(self, camera_event: CameraEvent) -> tuple[tuple[Path, Segment], ...]:
        finished = SegmentFinished(
            camera_id=201,
            path="201/2026010100/1_2.ts",
            started_at=START,
            clock_trusted=True,
            duration=2_000_000,
            size=9,
        )
        return ((self.files.segment, Segment(7, **finished.model_dump(exclude={"kind", "gap_from", "grew_as"}))),)

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        return None if before > 100 else tuple(f"{number:064x}" for number in range(after + 1, before))

    async def event_thumbnail(self, camera_event: CameraEvent) -> Path:
        self._available()
        return self.files.picture

    async def forget(self, camera_event_id: int) -> None:
        self.forgotten.append(camera_event_id)
        await self.evidence_files.delete_let_go()

    async def camera_thumbnail(self, camera_id: int) -> Path:
        if camera_id != self.camera.camera_id:
            raise NotFoundError(f"this site has no camera {camera_id}")
        self._available()
        return self.files.picture

    async def vod_master(self, camera_event: CameraEvent) -> str:
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nindex.m3u8\n"

    async def vod_media(self, camera_event: CameraEvent) -> str:
        return "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n7.ts\n#EXT-X-ENDLIST\n"

    async def vod_segment(self, camera_event: CameraEvent, segment_id: int) -> Path:
        if segment_id != 7:
            raise NotFoundError("this event has no such segment")
        return self.files.segment

    def _available(self) -> None:
        if self.camera.condition != "recording":
            raise CameraUnavailable(f"camera {self.camera.camera_id}: {self.camera.detail}")


@dataclass(frozen=True)
class Footage:
    clip: Path
    segment: Path
    picture: Path
    opened: FileIO
    """The segment, open for reading."""


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Footage]:
    """Two seconds of a moving bar, as a real MP4, a real MPEG-TS file and a real JPEG."""
    folder = tmp_path_factory.mktemp("footage")
    (folder / "segment.ts").touch()
    made = Footage(folder / "clip.mp4", folder / "segment.ts", folder / "picture.jpg", FileIO(folder / "segment.ts"))
    for path, form in ((made.clip, "mp4"), (made.segment, "mpegts")):
        with av.open(str(path), "w", format=form) as container:
            stream = container.add_stream("libx264", rate=10)
            stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
            for number in range(20):
                container.mux(stream.encode(_bar(number, "yuv420p")))
            container.mux(stream.encode(None))
    jpeg = av.CodecContext.create("mjpeg", "w")
    jpeg.width, jpeg.height, jpeg.pix_fmt, jpeg.time_base = 320, 180, "yuvj420p", Fraction(1, 10)
    made.picture.write_bytes(b"".join(bytes(packet) for packet in jpeg.encode(_bar(8, "yuvj420p"))))
    with made.opened:
        yield made


def _bar(number: int, form: str) -> av.VideoFrame:
    """A grey picture with a bright bar that moves."""
    frame = av.VideoFrame(320, 180, form)
    for plane, ground in zip(frame.planes, (60, 128, 128), strict=True):
        row = bytearray([ground]) * plane.line_size
        if plane is frame.planes[0] or plane.width == 320:
            row[number * 16 : number * 16 + 16] = b"\xdc" * 16
        plane.update(bytes(row) * plane.height)
    frame.pts, frame.time_base = number, Fraction(1, 10)
    return frame
