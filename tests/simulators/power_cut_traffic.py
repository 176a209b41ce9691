"""Run as a program, with its calls recorded: lives of a gateway's store, recorder, outbox and access log, with marks.

`power_cut_traffic.py FOLDER STEPS`. A promise is marked once it was made; a change of rights, a row that goes to
central and a deletion already before. Lives end cleanly and abruptly. Before the last one an index is damaged, so that
its start saves all rows into a fresh file.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import random
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Awaitable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import structlog
from recorded_disk import MARKS

from drivers.rtsp.frames import EncodedFrame
from drivers.rtsp.server.testcard import TestCard
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.salvage import salvage
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.credentials import Card
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import KeptAs, Labels
from gateway.domain.footage import SegmentFinished
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.domain.writes import CAMERA_CREATE, CAMERA_UPDATE
from gateway.recording.chain import FootageChain
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.recording.index import FootageIndex
from gateway.runtime.clock import ClockOffset, Stamp, TrustedTime
from gateway.runtime.data_folder import media_condition
from gateway.runtime.trusted_time import keep_trusted_time
from gateway.store import Entry, Store, StoredCard, Webhook
from gateway.store.engine import opening

CAMERA = 7
SECOND = 1_000_000
START = 1_800_000_000 * SECOND
TRUSTED = ClockOffset(boot_id="", micros=0, trusted=True)
_LIVES = ("closed", "killed", "killed", "damaged, then killed")
_RATE = 10
_WAL_PAGES = 200
"""A fifth of a gateway's: so many more times its log is moved into the file and begun anew."""
_LIMITS = EvidenceLimits(bytes_each=10**7, per_event=10_000, floor=0)


class Marks:
    """The file of marks."""

    def __init__(self, root: Path) -> None:
        self._file = os.open(root / MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def put(self, what: str, **facts: object) -> None:
        os.write(self._file, json.dumps({"what": what, **facts}).encode() + b"\n")


class SiteClock:
    """Wall time that goes on from life to life, ahead of all footage."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> Stamp:
        return Stamp(START + 86_400 * SECOND, trusted=True)


class Site:
    """A gateway's files on disk, opened as it opens them."""

    def __init__(self, root: Path) -> None:
        self.root, self.media, self.clock = root, root / "media", SiteClock()
        self.store = Store(folder=root, site_name="Cuts", sends=True)
        self.chain = FootageChain(links=self.store.chain_links, media=self.media)
        self.index = FootageIndex(
            segments=self.store.segments,
            journal=self.store.journal,
            media=self.media,
            clock=self.clock,
            chain=self.chain,
        )
        self.evidence = EvidenceFiles(
            store=self.store, media=self.media, clock=self.clock, fault=lambda: "", limits=_LIMITS
        )
        self.saved: list[SegmentFinished] = []

    async def open(self) -> None:
        """Do what a start does."""
        self.condition = media_condition(self.root)
        await self.store.open()
        await self.index.recover((CAMERA,))
        await self.evidence.open()
        self.saved = salvage(self.media, CAMERA, offset=TRUSTED)
        await self.store.segments.add(self.saved)
        await self.chain.link_all()


def damage_an_index(root: Path) -> None:
    """Overwrite the root of an index: every row can still be read without it."""
    with closing(sqlite3.connect(root / "site.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'camera_event' AND sql IS NOT NULL"
        ).fetchone()
    file = os.open(root / "site.db", os.O_WRONLY)
    os.pwrite(file, b"\xa5" * 4096, (page - 1) * 4096)
    os.fsync(file)
    os.close(file)


class Life:
    """One run of the traffic."""

    def __init__(self, site: Site, marks: Marks, number: int, steps: int) -> None:
        self._site, self._store, self._marks, self._number, self._steps = site, site.store, marks, number, steps
        self._busy = True
        self._given = number * 100_000
        self._chance = random.Random(number)

    async def run(self, frames: list[EncodedFrame]) -> None:
        """Let everything happen side by side, each so many times."""
        recorder = threading.Thread(target=self._record, args=(frames, asyncio.get_running_loop()))
        recorder.start()
        async with asyncio.TaskGroup() as around:
            tending = [
                around.create_task(work()) for work in (self._store.run, self._site.index.run, self._site.chain.run)
            ]
            sending = around.create_task(self._send())
            async with asyncio.TaskGroup() as group:
                for lane in range(3):
                    group.create_task(self._pass(lane))
                for work in (self._write, self._admit, self._receive, self._delete, self._keep_cards):
                    group.create_task(work())
            self._busy = False
            await sending
            await asyncio.to_thread(recorder.join)
            for task in tending:
                task.cancel()

    def _event(self, text: str) -> Event:
        at = START + self._number * 3600 * SECOND
        return Event(EventKind.VEHICLE_PASSED, at, clock_trusted=True, text=text, lane_id="north")

    async def _pass(self, lane: int) -> None:
        for step in range(self._steps):
            event = self._event(f"{self._number}/{lane}/{step}")
            at = event.date_at
            moment = Moment(CAMERA, event.description, "", at, at + SECOND, clock_trusted=True)
            passage = Passage("north", "entry", PassageOutcome.PASSED, at, at + SECOND, clock_trusted=True)
            made = await self._store.journal.record(
                Entry(
                    events=(self._event(f"{event.description} before"), event),
                    passage=passage if step % 2 else None,
                    moments=(moment,) if step % 3 == 0 else (),
                )
            )
            self._marks.put("event", id=made.event_ids[-1], text=event.description)
            for number in made.camera_event_ids:
                self._marks.put("moment", id=number, event=made.event_ids[-1])

    async def _send(self) -> None:
        """Play a central that takes most of what it gets."""
        while self._busy:
            rows = await self._store.outbox.due(now=START * 2, limit=3)
            for row in await self._store.outbox.begin_together(rows):
                self._marks.put("sent", id=row.id, kind=row.kind, record=row.record_id)
                if self._chance.random() < 0.2:
                    await self._store.outbox.failed(row, error="no answer", next_at=0)
                    continue
                self._given += 1
                central = self._given if row.action == "create" else None
                await self._store.outbox.delivered(row, central_id=central, now=START, trusted=True)
                self._marks.put("delivered", id=row.id, kind=row.kind, record=row.record_id, central=central)
            await asyncio.sleep(0.005)  # the pace of central

    async def _write(self) -> None:
        """Play people who change cameras."""
        for step in range(self._steps // 2):
            name = f"camera {self._number}/{step}"
            made = await self._store.pending_writes.hold(CAMERA_CREATE, None, {"name": name}, now=START, sends=True)
            self._marks.put("camera", id=made.record_id, name=name)
            if step % 3 == 0:
                await self._store.pending_writes.hold(
                    CAMERA_UPDATE, made.record_id, {"name": f"{name} changed"}, now=START, sends=True
                )
                self._marks.put("camera", id=made.record_id, name=f"{name} changed")

    async def _admit(self) -> None:
        """Play an administrator: accounts, keys, a second factor, webhooks; each change is marked before and after."""
        accounts, keys, hooks = self._store.accounts, self._store.api_keys, self._store.webhooks
        if self._number == 1:
            await self._change("role porter", '["x"]', accounts.put_role("porter", frozenset({"x"})))
        for step in range(self._steps // 3):
            name, key, hook = (f"{what}-{self._number}-{step}" for what in ("user", "key", "hook"))
            await self._change(
                f"account {name}", "first True", accounts.add(name, password_hash="first", role="porter", now=1)
            )
            await self._change(f"account {name}", "second True", accounts.set_password(name, "second"))
            if step % 2:
                await self._change(f"account {name}", "second False", accounts.set_disabled(name, disabled=True))
            if step % 3 == 0:
                await self._change(f"account {name}", "", accounts.remove(name))
            elif step % 3 == 1:
                await accounts.set_second_factor(name, "JBSWY3DPEHPK3PXP", step=1, codes=(name.encode(),))
                self._marks.put("second factor", name=name)
            digest = hashlib.sha256(key.encode()).digest()
            await self._change(
                f"key {key}",
                digest.hex(),
                keys.add(key, key_hash=digest, permissions=frozenset({"x"}), now=1, expires_at=None),
            )
            if step % 2:
                await self._change(f"key {key}", "", keys.remove(key))
            if step % 4 == 0:
                webhook = Webhook(hook, "https://x.example", ("vehicle.passed",), "s", 1, "cuts")
                await self._change(f"webhook {hook}", hook, hooks.add(webhook, most=1000))
            if step % 8 == 4:
                await self._change(f"webhook {hook}", "", hooks.remove(hook))
            at = START + self._number * SECOND + step  # it goes on from life to life
            await asyncio.to_thread(keep_trusted_time, self._site.root, TrustedTime("boot", step, at))
            self._marks.put("time", at=at)

    async def _change(self, subject: str, state: str, change: Awaitable[object]) -> None:
        self._marks.put("asked", subject=subject, state=state)
        await change
        self._marks.put("done", subject=subject, state=state)

    async def _receive(self) -> None:
        """Play a program that uploads evidence."""
        made = await self._store.journal.record(
            Entry(events=(self._event("evidence"),), moments=(Moment(CAMERA, "e", "", START, START + 1, True),))
        )
        camera_event = await self._store.camera_events.get(made.camera_event_ids[0])
        for step in range(self._steps // 3):
            content = self._chance.randbytes(self._chance.randint(1, 60_000))
            async with self._site.evidence.receive() as incoming:
                await incoming.write(content)
                await incoming.finish()
                kept = await incoming.keep(camera_event, Labels(f"{step}", "", KeptAs.INCIDENT, "cuts"))
            self._marks.put("evidence", id=kept.id, sha256=hashlib.sha256(content).hexdigest())

    async def _keep_cards(self) -> None:
        for step in range(self._steps // 2):
            number = self._number * 10_000 + step
            await self._store.cards.apply(put=[StoredCard(Card(number, str(number)), f'{{"id": {number}}}')], now=1)
            self._marks.put("card", id=number)

    async def _delete(self) -> None:
        for _ in range(self._steps // 8):
            await asyncio.sleep(0.05)  # the pace of the retention
            old = await self._store.segments.after(0, limit=2)
            if len(old) == 2:
                self._marks.put("deleting", paths=[one.path for one in old])
                await self._site.index.delete(old)

    def _record(self, frames: list[EncodedFrame], loop: asyncio.AbstractEventLoop) -> None:
        """Write footage as a camera worker's thread does, until the rest is done."""

        def finished(segment: SegmentFinished) -> None:
            self._marks.put("segment", path=segment.path, sha256=segment.sha256, start=segment.started_at)
            loop.call_soon_threadsafe(self._site.index.offer, segment)

        segmenter = Segmenter(
            camera_id=CAMERA,
            media=self._site.media,
            segment_seconds=0.4,
            shelf=ToDisk(media=self._site.media, finished=finished),
        )
        length = frames[-1].pts + 90_000 // _RATE - frames[0].pts
        for turn in range(10**6):
            for frame in frames:
                pts = frame.pts + turn * length
                moved = replace(frame, pts=pts, dts=frame.dts + turn * length, arrived=pts / 90_000)
                now = START + self._number * 3600 * SECOND + pts * 100 // 9
                segmenter.push(moved, Stamp(now, trusted=True))
                time.sleep(0.004)  # the pace of the camera
                if not self._busy:
                    return  # as abruptly as a power cut: its part stays


def frames() -> list[EncodedFrame]:
    """Encode some footage, a keyframe every 0.4 s."""
    card = TestCard(
        name="C",
        time_code=lambda: "0",
        width=128,
        height=96,
        rate=Fraction(_RATE),
        keyframe_seconds=0.4,
        monotonic=lambda: 0.0,
    )
    return [frame for _ in range(20) for frame in card.encode()]


async def live(root: Path, number: int, *, steps: int, footage: list[EncodedFrame]) -> None:
    """Start, let things happen, and end as this life does."""
    ending, marks = _LIVES[number - 1], Marks(root)
    marks.put("life", number=number, damaged=ending.startswith("damaged"))
    if ending.startswith("damaged"):
        damage_an_index(root)
    site = Site(root)
    await site.open()
    await Life(site, marks, number, steps).run(footage)
    if ending == "closed":
        await site.store.close()


def lives(root: Path, steps: int) -> None:
    """Fork a process for each life; none but the first imports anything or encodes."""
    footage = frames()
    for number in range(1, len(_LIVES) + 1):
        pid = os.fork()
        if pid == 0:
            asyncio.run(_ended(live(root, number, steps=steps, footage=footage)))
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status):
            sys.exit(f"life {number} ended with {os.waitstatus_to_exitcode(status)}")


async def _ended(life: Awaitable[None]) -> None:
    """End the process without any tidying up."""
    try:
        await life
    except BaseException:  # noqa: BLE001 (whatever it is, it is told, and nothing is tidied up)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def quiet() -> None:
    """Log nothing: what recovery says of thousands of cuts is in the way."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


if __name__ == "__main__":
    quiet()
    opening.WAL_PAGES = _WAL_PAGES
    lives(Path(sys.argv[1]), int(sys.argv[2]))
