"""Rounds of kill -9 and torn writes against what records: `python tests/simulators/kill_rounds.py --rounds 300`.

Each round two processes work on one media folder and one store as a camera worker's writing thread and the gateway's
index do, with the same code, some hundred segments a second: segments, rows, camera events that pin them, clips
announced, deletions. At a random moment one or both are killed; then a disk that lost something is played: a file cut
off, the store's log torn, rows gone. After a start everything must be as promised:

- no row without its file, no file without its row, no deletion half done, nothing left half written;
- every clip that was announced and not given back is still there and decodes to its end without an error;
- the camera's chain leads from link to link up to the newest.

Pictures come ten times as fast as a camera's, and wall time follows them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import av
import av.logging
from waiting import wait_until

from drivers.rtsp.frames import EncodedFrame
from drivers.rtsp.server.testcard import TestCard
from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.pre_roll import PreRoll
from gateway.camera_worker.salvage import salvage
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import CutClip, Pin, PinnedFootage, SegmentFinished
from gateway.domain.footage_chain import GENESIS, walked
from gateway.domain.passages import CameraEvent, Moment
from gateway.recording.chain import FootageChain
from gateway.recording.forecast import StorageLimits
from gateway.recording.index import FootageIndex
from gateway.recording.readiness import Coverage, Readiness
from gateway.recording.retention import Retention
from gateway.runtime.clock import ClockOffset, Stamp
from gateway.store import Entry, Store

CAMERA = 7
RATE = 10
SECOND = 1_000_000
START = 1_800_000_000 * SECOND
_SEGMENT_SECONDS = 0.4
_CAP = 150_000
_KEPT_EVENTS = 40
_TRUSTED = ClockOffset(boot_id="", micros=0, trusted=True)
_PRE_ROLL_SECONDS = 8.0
_WAL_FRAME = 24 + 4096
_FRAME_PAUSE = 0.003


@dataclass(frozen=True)
class Site:
    """The place of a series of rounds."""

    folder: Path

    @property
    def media(self) -> Path:
        return self.folder / "media"

    @property
    def notebook(self) -> Path:
        """The announcements of the gateway's side; not on the disk that forgets."""
        return self.folder / "announced"

    @property
    def socket(self) -> Path:
        return self.folder / "reports"


class FootageClock:
    """Wall time as the footage tells it."""

    def __init__(self) -> None:
        self.micros = START + 86_400 * SECOND  # behind all footage, until it is known where that ends

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> Stamp:
        return Stamp(self.micros, trusted=True)


# --- the worker's side


def write_footage(site: Site, *, start: int, frames: list[EncodedFrame], events_only: bool) -> None:
    """Record until killed; what is finished, and what time it is, is told to whoever listens."""
    line = Line(site)
    for segment in salvage(site.media, CAMERA, offset=_TRUSTED):
        line.tell(segment.model_dump_json())

    def tell(segment: SegmentFinished) -> None:
        line.tell(segment.model_dump_json())

    held = PreRoll(media=site.media, seconds=_PRE_ROLL_SECONDS, finished=tell) if events_only else None
    segmenter = Segmenter(
        camera_id=CAMERA, media=site.media, segment_seconds=_SEGMENT_SECONDS, finished=tell, shelf=held
    )
    length = frames[-1].pts + 90_000 // RATE - frames[0].pts
    turn = 0
    while True:
        for frame in frames:
            pts = frame.pts + turn * length
            moved = replace(frame, pts=pts, dts=frame.dts + turn * length, arrived=pts / 90_000)
            now = start + moved.pts * 100 // 9
            segmenter.push(moved, Stamp(now, trusted=True))
            if held is not None:
                line.tell(str(now))
                if (pins := line.heard()) is not None:
                    held.pin(pins)
            time.sleep(_FRAME_PAUSE)  # the pace of the camera
        turn += 1


class Line:
    """To the gateway's side and back, as far as it is there."""

    def __init__(self, site: Site) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._heard = b""
        with contextlib.suppress(OSError, Broken):  # without it what is recorded is found by itself
            wait_until(site.socket.exists)
            self._socket.connect(str(site.socket))
            self._socket.setblocking(False)

    def tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            self._socket.sendall(line.encode() + b"\n")

    def heard(self) -> tuple[Pin, ...] | None:
        """The newest pins, None when there is nothing new."""
        with contextlib.suppress(OSError):
            self._heard += self._socket.recv(1 << 20)
        *lines, self._heard = self._heard.split(b"\n")
        return PinnedFootage.model_validate_json(lines[-1]).pins if lines else None


# --- the gateway's side


async def keep_footage(site: Site) -> None:
    """Index, pin, announce and delete until killed."""
    clock = FootageClock()
    store = Store(folder=site.folder, site_name="Rounds", sends=True)
    await store.open()
    chain = FootageChain(links=store.chain_links, media=site.media)
    index = FootageIndex(segments=store.segments, journal=store.journal, media=site.media, clock=clock, chain=chain)
    await index.recover((CAMERA,))
    clock.micros = index.covered_until(CAMERA) or START

    def coverage(camera_id: int) -> Coverage:
        until = index.covered_until(camera_id)
        clock.micros = max(clock.micros, until or 0)
        return Coverage(until=until, more_may_come=True, since=0)

    listening: list[asyncio.StreamWriter] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.append(writer)
        with contextlib.suppress(ConnectionError):  # a worker that was killed
            async for line in reader:
                if line.startswith(b"{"):
                    index.offer(SegmentFinished.model_validate_json(line))
                else:
                    clock.micros = max(clock.micros, int(line))
        listening.remove(writer)
        await index.adopt(frozenset({CAMERA}))

    async def pin() -> None:
        version = -1
        while True:
            version = await store.changes.beyond(version, within=1)
            since = clock.micros - int(_PRE_ROLL_SECONDS * SECOND)
            events = await store.camera_events.pinned_since((CAMERA,), since)
            pins = PinnedFootage(
                pins=tuple(Pin(camera_id=CAMERA, begin=one.pinned_from, until=one.pinned_until) for one in events)
            )
            for writer in listening:
                writer.write(pins.model_dump_json().encode() + b"\n")

    retention = Retention(
        segments=store.segments, index=index, media=site.media,
        limits=StorageLimits(cap=_CAP, floor=0, continuous_days=3650, transaction_days=0, incident_days=0),
        clock=clock, starved=lambda _: None, media_fault=lambda: "", look_seconds=0.03,
    )  # fmt: skip
    readiness = Readiness(camera_events=store.camera_events, clock=clock, coverage=coverage)
    site.socket.unlink(missing_ok=True)
    async with asyncio.TaskGroup() as group, await asyncio.start_unix_server(hear, site.socket):
        for work in (store.run, index.run, chain.run, retention.run, pin):
            group.create_task(work())
        group.create_task(_announce(site, store, readiness, clock))


async def _announce(site: Site, store: Store, readiness: Readiness, clock: FootageClock) -> None:
    announced = set(open_announcements(site))
    while True:
        await asyncio.sleep(0.02)  # the pace of the site
        await readiness.look()
        latest = await store.segments.latest(CAMERA)
        if latest is not None:
            clock.micros = max(clock.micros, latest.ended_at)
        await store.journal.record(_passage(clock.micros))
        ready = (await store.camera_events.page(limit=30)).events
        for event in ready:
            if event.ready and event.id not in announced:
                segments = await store.segments.between(CAMERA, event.pinned_from, event.pinned_until)
                _note(site, {"ready": event.id, "paths": [segment.path for segment in segments]})
                announced.add(event.id)
        for row in (await store.outbox.due(now=2**62, limit=200))[:-_KEPT_EVENTS]:
            _note(site, {"given_back": row.record_id})
            await store.outbox.delivered(row, central_id=row.record_id)


def _passage(at: int) -> Entry:
    event = Event(kind=EventKind.VEHICLE_PASSED, date_at=at, clock_trusted=True, description="passed")
    moment = Moment(
        camera_id=CAMERA, name="passed", description="", pinned_from=at - 2 * SECOND, pinned_until=at + SECOND,
        clock_trusted=True,
    )  # fmt: skip
    return Entry(events=(event,), moments=(moment,))


def _note(site: Site, what: dict[str, object]) -> None:
    descriptor = os.open(site.notebook, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, json.dumps(what).encode() + b"\n")
    os.close(descriptor)


def open_announcements(site: Site) -> dict[int, list[str]]:
    """Camera events whose clips were announced and not given back, each with its segments."""
    found: dict[int, list[str]] = {}
    given_back: set[int] = set()
    for line in site.notebook.read_text().splitlines() if site.notebook.exists() else ():
        note = json.loads(line)
        if "given_back" in note:
            given_back.add(note["given_back"])
        else:
            found[note["ready"]] = note["paths"]
    return {event_id: paths for event_id, paths in found.items() if event_id not in given_back}


# --- a stable of processes that are forked with everything imported


def stable(folder: Path) -> None:
    """Fork a process for each line of stdin, a role and its start; tell its number."""
    site = Site(folder)
    card = TestCard(
        name="K", time_code=lambda: "0", width=480, height=272, rate=Fraction(RATE),
        keyframe_seconds=_SEGMENT_SECONDS, monotonic=lambda: 0.0,
    )  # fmt: skip
    frames = [frame for _ in range(40) for frame in card.encode()]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        role, start, mode = line.split()
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            continue
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        if role == "worker":
            write_footage(site, start=int(start), frames=frames, events_only=mode == "events")
        else:
            asyncio.run(keep_footage(site))


class Stable:
    """The stable, and who lives in it."""

    def __init__(self, site: Site) -> None:
        with (site.folder / "said").open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--stable", str(site.folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip
        self._living: set[int] = set()

    def start(self, role: str, start: int = 0, mode: str = "-") -> int:
        print(role, start, mode, file=self._process.stdin, flush=True)
        pid = int(self._process.stdout.readline())
        self._living.add(pid)
        return pid

    def kill(self, pid: int) -> bool:
        """Kill it, and return once it is gone: whether it was still alive."""
        self._living.discard(pid)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
        return True

    def close(self) -> None:
        for pid in tuple(self._living):
            self.kill(pid)
        self._process.kill()
        self._process.communicate()


# --- what a disk may lose


def tear(site: Site, how: str, chance: random.Random) -> None:
    """Lose something, as a power cut or a disk that lied would."""
    match how:
        case "part":
            for part in site.media.glob("*/*/*.part"):
                size = part.stat().st_size
                os.truncate(part, chance.randint(0, size))
                if chance.random() < 0.3:
                    os.truncate(part, size)  # its end is zeros now
        case "segment":
            if files := sorted(site.media.glob("*/*/*.ts")):
                file = chance.choice(files[-5:])
                os.truncate(file, chance.randrange(file.stat().st_size // 188) * 188 + chance.randrange(1, 188))
        case "file":
            if files := sorted(site.media.glob("*/*/*.ts")):
                chance.choice(files[-10:]).unlink()
        case "log":
            log = site.folder / "site.db-wal"
            if end := _end_of_log(log):
                at = max(0, end - chance.randint(1, chance.choice((20, 200)) * _WAL_FRAME))
                os.truncate(log, at)
                if chance.random() < 0.5:
                    with log.open("ab") as file:
                        file.write(chance.randbytes(end - at))
        case "rows":
            import sqlite3

            with contextlib.closing(sqlite3.connect(site.folder / "site.db")) as connection, connection:
                connection.execute(
                    "DELETE FROM segment WHERE id > (SELECT max(id) FROM segment) - ?", (chance.randint(1, 8),)
                )


def _end_of_log(log: Path) -> int:
    """Return the end of the newest frame, 0 for none. The frames behind it are older than the last checkpoint."""
    data = log.read_bytes() if log.exists() else b""
    end = 32
    while len(data) >= end + _WAL_FRAME and data[end + 8 : end + 16] == data[16:24]:
        end += _WAL_FRAME
    return end if end > 32 else 0


# --- what must hold


@dataclass
class Tally:
    """The observations of all rounds."""

    rounds: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    anchor: tuple[int, str] = (0, GENESIS)


class Broken(AssertionError):
    """A promise was broken."""


async def set_right(site: Site) -> tuple[Store, tuple[SegmentFinished, ...]]:
    """Do the work of a start: the index, then what a worker saves, which is returned."""
    store = Store(folder=site.folder, site_name="Rounds", sends=True)
    await store.open()
    index = FootageIndex(segments=store.segments, journal=store.journal, media=site.media, clock=FootageClock())
    await index.recover((CAMERA,))
    saved = salvage(site.media, CAMERA, offset=_TRUSTED)
    await store.segments.add(saved)
    await FootageChain(links=store.chain_links, media=site.media).link_all()
    return store, tuple(saved)


async def judge(site: Site, *, lied: bool, tally: Tally, chance: random.Random) -> int:
    """Start, look at everything, and end cleanly; returns where the footage ends. Raises Broken."""
    store, saved = await set_right(site)
    try:
        files = {str(path.relative_to(site.media)) for path in site.media.glob("*/*/*.ts")}
        rows = await store.segments.paths()
        if files != rows:
            raise Broken(f"files without rows {sorted(files - rows)}, rows without files {sorted(rows - files)}")
        if garbage := await store.segments.garbage():
            raise Broken(f"deletions half done: {garbage}")
        if left := list(site.media.rglob("*.part")):
            raise Broken(f"left half written: {left}")
        for row in await store.segments.after(0, limit=10**6):
            if (site.media / row.path).stat().st_size != row.size:
                raise Broken(f"{row.path} is not as long as its row says")
        for segment in saved:
            shown = _decoded(site.media / segment.path)
            if shown != segment.frames:
                raise Broken(f"{segment.path} was saved with {segment.frames} pictures and shows {shown}")
            tally.seen["segments saved"] += 1
            tally.seen["pictures saved"] += shown
        if store.salvaged:
            tally.seen["store salvaged"] += 1
        tally.seen["segments"] += len(rows)
        tally.seen["announcements open"] += len(open_announcements(site))
        tally.seen["bytes"] += await store.segments.bytes_kept()
        await _judge_chain(site, store, tally, lied=lied)
        announced = open_announcements(site)
        for event_id in sorted(announced, key=lambda _: chance.random())[:3]:
            event = await store.camera_events.get(event_id)
            if event is None and lied:
                tally.seen["events lost with the log"] += 1
                continue
            if event is None:
                raise Broken(f"camera event {event_id} was announced and is gone")
            await _judge_clip(site, store, event, announced[event_id], lied=lied)
            tally.seen["clips decoded"] += 1
        if lied:
            await _announce_anew(site, store, announced)
        latest = await store.segments.latest(CAMERA)
        return latest.ended_at if latest else START
    finally:
        await store.close()


async def _announce_anew(site: Site, store: Store, announced: dict[int, list[str]]) -> None:
    """Announce what is left of the clips that were announced before the disk lost something."""
    for event_id in announced:
        event = await store.camera_events.get(event_id)
        if event is None:
            _note(site, {"given_back": event_id})
            continue
        segments = await store.segments.between(CAMERA, event.pinned_from, event.pinned_until)
        _note(site, {"ready": event_id, "paths": [segment.path for segment in segments]})


async def _judge_clip(site: Site, store: Store, event: CameraEvent, paths: list[str], *, lied: bool) -> None:
    segments = await store.segments.between(CAMERA, event.pinned_from, event.pinned_until)
    gone = set(paths) - {segment.path for segment in segments}
    if gone and not lied:
        raise Broken(f"of the clip of {event.id} are gone: {sorted(gone)}")
    if not segments:
        if paths and not lied:
            raise Broken(f"nothing is left of the clip of {event.id}")
        return
    output = f"clips/{event.id}.mp4"
    (site.media / "clips").mkdir(exist_ok=True)
    cut_clip(
        site.media,
        CutClip(
            segments=tuple(segment.path for segment in segments),
            output=output,
            skip=max(0, event.pinned_from - segments[0].started_at),
            leave_off=max(0, segments[-1].ended_at - event.pinned_until),
        ),
    )
    spans = [
        min(segment.ended_at, event.pinned_until) - max(segment.started_at, event.pinned_from) for segment in segments
    ]
    least = sum(spans) * RATE // SECOND - 2
    shown = _decoded(site.media / output)
    (site.media / output).unlink()
    if shown < least:
        raise Broken(f"the clip of {event.id} shows {shown} pictures, at least {least} are due")


def _decoded(file: Path) -> int:
    """Return the number of pictures; any error of the decoder is one. Raises Broken."""
    try:
        with av.logging.Capture() as said, av.open(str(file), options={"err_detect": "explode"}) as container:
            stream = container.streams.video[0]
            stream.codec_context.options = {"err_detect": "explode"}
            shown = sum(1 for _ in container.decode(stream))
    except av.error.FFmpegError as error:
        raise Broken(f"{file.name} does not play: {error}") from error
    if wrong := [text for level, _, text in said if level <= av.logging.ERROR]:
        raise Broken(f"{file.name} plays with errors: {wrong}")
    return shown


async def _judge_chain(site: Site, store: Store, tally: Tally, *, lied: bool) -> None:
    """From the newest link of the last start to that of this one. Rows that a disk lost are lost to the chain too."""
    number, head = await store.chain_links.head(CAMERA)
    before, link = tally.anchor
    if not lied:
        leaves = await FootageChain(links=store.chain_links, media=site.media).leaves(
            CAMERA, after=before, before=number + 1
        )
        if leaves is None or walked(link, leaves) != head:
            raise Broken(f"the chain does not lead from number {before} to {number}")
        tally.seen["links proven"] += len(leaves)
    tally.anchor = (number, head)


# --- rounds


def rounds(folder: Path, count: int, *, seed: int) -> Iterator[Tally]:
    """So many rounds, each told. Raises Broken, with the round and what was done in it."""
    av.logging.set_level(av.logging.ERROR)
    site = Site(folder)
    site.media.mkdir()
    chance = random.Random(seed)
    tally = Tally()
    processes = Stable(site)
    end = START
    try:
        for number in range(count):
            site.socket.unlink(missing_ok=True)
            gateway = processes.start("gateway")
            mode = chance.choice(("continuous", "events"))
            worker = processes.start("worker", end + SECOND // 2, mode)
            who = chance.choice(("worker", "gateway", "both", "both"))
            how = chance.choice(("nothing", "part", "part", "log", "rows", "segment", "file"))
            if chance.random() < 0.8:
                wait_until(site.socket.exists)
            time.sleep(chance.uniform(0.0, 0.9))  # the moment of the kill is what differs
            first, second = (worker, gateway) if who != "gateway" else (gateway, worker)
            alive = processes.kill(first)
            if who != "both":
                time.sleep(chance.uniform(0.0, 0.2))  # likewise
            alive &= processes.kill(second)
            tear(site, how, chance)
            try:
                _still_there(alive)
                lied = how in {"log", "rows", "segment", "file"}
                end = max(end, asyncio.run(judge(site, lied=lied, tally=tally, chance=chance)))
            except Exception as error:
                error.add_note(f"round {number} of seed {seed}, {mode}: {who} killed, then {how}; in {folder}")
                error.add_note((folder / "said").read_text()[-4000:])
                raise
            tally.rounds += 1
            tally.seen[f"{who} killed"] += 1
            tally.seen[f"{how} torn"] += 1
            tally.seen[mode] += 1
            yield tally
    finally:
        processes.close()


def _still_there(alive: bool) -> None:
    if not alive:
        raise Broken("a process died by itself")


def main() -> None:
    """The command."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=300)
    words.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    words.add_argument("--stable", type=Path, help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.stable:
        stable(asked.stable)
        return
    folder = Path(tempfile.mkdtemp(prefix="kill-rounds-"))
    begun = time.monotonic()
    for tally in rounds(folder, asked.rounds, seed=asked.seed):
        if tally.rounds % 10 == 0:
            print(f"{tally.rounds} rounds, {time.monotonic() - begun:.0f} s: {dict(sorted(tally.seen.items()))}")
    shutil.rmtree(folder)
    print(f"{asked.rounds} rounds with seed {asked.seed}: every promise held")


if __name__ == "__main__":
    main()
