"""Start on a disk that was cut, and compare it with what had been promised until then."""

from __future__ import annotations

import hashlib
import io
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import av
import av.logging
from power_cut_traffic import CAMERA, START, Site
from recorded_disk import Mark

from gateway.camera_worker.segment_file import PART_SUFFIX
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import GENESIS, walked
from gateway.domain.writes import CAMERA_CREATE
from gateway.runtime.data_folder import MediaCondition
from gateway.runtime.trusted_time import read_trusted_time
from gateway.store import UNREADABLE, Entry, EventFilter, Store

_PAGE = 4096


class Broken(AssertionError):
    """A promise was broken."""


@dataclass
class Promises:
    """The promises so far, by kind."""

    life: int = 0
    damaged: bool = False
    events: dict[int, str] = field(default_factory=dict)
    moments: dict[int, int] = field(default_factory=dict)
    cameras: set[int] = field(default_factory=set)
    cards: set[int] = field(default_factory=set)
    rights: dict[str, set[str]] = field(default_factory=dict)
    second_factors: set[str] = field(default_factory=set)
    segments: dict[str, str] = field(default_factory=dict)
    deleting: set[str] = field(default_factory=set)
    evidence: dict[int, str] = field(default_factory=dict)
    sent: dict[int, tuple[str, int]] = field(default_factory=dict)
    delivered: dict[int, tuple[str, int, int | None]] = field(default_factory=dict)
    time: int = 0

    def hear(self, marks: Iterable[Mark]) -> None:
        """Take in further marks."""
        for mark in marks:
            self._hear(**mark)

    def _hear(self, what: str, **facts: object) -> None:
        match what:
            case "life":
                self.life, self.damaged = facts["number"], self.damaged or facts["damaged"]
            case "event":
                self.events[facts["id"]] = facts["text"]
            case "moment":
                self.moments[facts["id"]] = facts["event"]
            case "camera":
                self.cameras.add(facts["id"])
            case "card":
                self.cards.add(facts["id"])
            case "asked":  # it may be there before it is promised
                self.rights.setdefault(facts["subject"], {""}).add(facts["state"])
            case "done":
                self.rights[facts["subject"]] = {facts["state"]}
            case "second factor":
                self.second_factors.add(facts["name"])
            case "segment":
                self.segments[facts["path"]] = facts["sha256"]
            case "deleting":
                self.deleting |= set(facts["paths"])
            case "evidence":
                self.evidence[facts["id"]] = facts["sha256"]
            case "sent":
                self.sent[facts["id"]] = facts["kind"], facts["record"]
            case "delivered":
                self.delivered[facts["id"]] = facts["kind"], facts["record"], facts["central"]
            case "time":
                self.time = facts["at"]


def lose_a_page(folder: Path, chance: random.Random) -> bool:
    """Spoil a page of the database, as a disk does that fails with its power; whether there was one."""
    path = folder / "site.db"
    pages = path.stat().st_size // _PAGE if path.exists() else 0
    if pages < 3:
        return False
    with path.open("r+b") as file:
        file.seek(chance.randrange(1, pages) * _PAGE)
        file.write(b"\xa5" * _PAGE)
    return True


async def judge(folder: Path, promises: Promises, *, written: dict[str, bytes], spoilt: bool) -> None:
    """Start, compare, write some more, and end. Raises Broken.

    `written`: every file that the camera's recorder made, as it was last. `spoilt`: rows may be gone, but nobody may
    have more rights. A spoilt page that no check reads may be found in use; the next start must rebuild the file.
    """
    site = await _opened(folder)
    try:
        if spoilt:
            try:
                await _judge_use(site, promises, spoilt=True)
            except StoreError:
                await site.store.close()
                site = await _opened(folder)
                await _judge_use(site, promises, spoilt=True)
            return
        await _judge_use(site, promises, spoilt=False)
        if site.store.salvaged and not promises.damaged:
            raise Broken(f"a cut counts as damage: {site.store.salvaged}")
        if site.condition is not MediaCondition.READY:
            raise Broken(f"the media folder is {site.condition}")
        await _judge_events(site.store, promises)
        await _judge_outbox(site.store, promises)
        await _judge_records(site.store, promises)
        await _judge_footage(site, promises, written)
        await _judge_evidence(site, promises)
        known = read_trusted_time(folder)
        if promises.time and (known is None or known.at < promises.time):
            raise Broken(f"the time {promises.time} was kept, {known} is known")
    finally:
        await site.store.close()
    _judge_file(folder / "site.db")


async def _opened(folder: Path) -> Site:
    site = Site(folder)
    try:
        await site.open()
    except Exception as error:
        raise Broken(f"the start fails: {type(error).__name__}: {error}") from error
    return site


async def _judge_use(site: Site, promises: Promises, *, spoilt: bool) -> None:
    await _judge_rights(site, promises, spoilt=spoilt)
    await _judge_ids(site, promises)


async def _judge_events(store: Store, promises: Promises) -> None:
    page = await store.events.page(EventFilter(), limit=100_000)
    texts = {event.id: event.description for event in page.events}
    if page.count != len(texts):
        raise Broken(f"{page.count} events are counted, {len(texts)} are there")
    _expect(promises.events, texts, "events")
    told = Counter(texts[number] for number in texts if texts[number].count("/") == 2)
    if twice := [text for text, count in told.items() if count > 1]:
        raise Broken(f"events are there twice: {twice}")
    for text in told:  # both events of an entry, or none
        if not text.endswith(" before") and f"{text} before" not in told:
            raise Broken(f"of the entry {text} a part is gone")


async def _judge_ids(site: Site, promises: Promises) -> None:
    """Record one more of each: nobody's id is given again."""
    event = Event(EventKind.VEHICLE_PASSED, START, clock_trusted=True, text="after the cut")
    made = await site.store.journal.record(Entry(events=(event,)))
    if made.event_ids[0] <= max(promises.events, default=0):
        raise Broken(f"event id {made.event_ids[0]} is given again")
    write = await site.store.pending_writes.hold(CAMERA_CREATE, None, {"name": "after"}, now=START, sends=True)
    if write.record_id <= max(promises.cameras, default=0):
        raise Broken(f"camera id {write.record_id} is given again")


async def _judge_outbox(store: Store, promises: Promises) -> None:
    if not (books := await store.outbox.books()).balance():
        raise Broken(f"the books do not balance: {books}")
    for webhook in await store.webhooks.all():
        if not webhook.books.balance():
            raise Broken(f"the books of {webhook.id} do not balance: {webhook.books}")
    rows = {row.id: row for row in await store.outbox.due(now=2**62, limit=100_000)}
    if gone := sorted(promises.delivered.keys() & rows.keys()):
        raise Broken(f"rows {gone[:5]} were delivered and wait again")
    for number in promises.sent.keys() & rows.keys():
        if not rows[number].begun:
            raise Broken(f"row {number} may be at central, and does not know it")
    waiting = Counter((row.kind, row.record_id) for row in rows.values() if row.action == "create")
    if twice := [record for record, count in waiting.items() if count > 1]:
        raise Broken(f"creates wait twice: {twice}")
    taken = {record for kind, record in promises.sent.values() if kind == "camera_event"}
    events = {row[0]: row[1:] for row in await _rows(store, "SELECT id, event_id, central_id FROM camera_event")}
    for number, event in promises.moments.items():
        if number not in events or events[number][0] != event:
            raise Broken(f"camera event {number} of event {event} is gone")
        if number not in taken and waiting["camera_event", number] != 1:
            raise Broken(f"camera event {number} waits nowhere")
    given = {"camera_event": {number: row[1] for number, row in events.items()}}
    given["camera"] = dict(await _rows(store, "SELECT id, central_id FROM provisional"))
    for kind, record, central in promises.delivered.values():
        if kind in given and central is not None and given[kind].get(record) != central:
            raise Broken(f"{kind} {record} has lost central's id {central}")


async def _rows(store: Store, sql: str) -> list[tuple[int, ...]]:
    return await store.database.read(lambda connection: connection.execute(sql).fetchall())


async def _judge_records(store: Store, promises: Promises) -> None:
    given = dict(await _rows(store, "SELECT id, central_id FROM provisional"))
    there = {number for (number,) in await _rows(store, "SELECT id FROM camera")}
    if lost := [number for number in promises.cameras if (given.get(number) or number) not in there]:
        raise Broken(f"cameras {lost[:5]} are gone")
    if gone := promises.cards - set(await store.cards.central_ids()):
        raise Broken(f"cards {sorted(gone)[:5]} are gone")


async def _judge_rights(site: Site, promises: Promises, *, spoilt: bool) -> None:
    """Compare who may come in and who is told with what was said last, or asked for since.

    The receiver of a webhook stands nowhere but in the database: with its row it is gone, and nobody is told.
    """
    store = site.store
    known = dict.fromkeys(promises.rights, "")
    accounts = await store.accounts.all()
    known |= {f"account {one.username}": f"{one.password_hash} {not one.disabled}" for one in accounts}
    known |= {f"key {one.name}": one.key_hash.hex() for one in await store.api_keys.all()}
    known |= {f"webhook {one.id}": one.id for one in await store.webhooks.all()}
    known |= {f"role {name}": f'["{"".join(allowed)}"]' for name, allowed in await store.accounts.roles()}
    for subject, allowed in promises.rights.items():
        if known[subject] not in allowed and not (spoilt and subject.startswith("webhook") and not known[subject]):
            raise Broken(f"{subject} is '{known[subject]}', it was left as {sorted(allowed)}")
    secrets = {one.username: one.totp_secret for one in accounts}
    for name in promises.second_factors & secrets.keys():
        if secrets[name] in ("", UNREADABLE):
            raise Broken(f"{name} has lost the second factor")


async def _judge_footage(site: Site, promises: Promises, written: dict[str, bytes]) -> None:
    rows = {row.path: row for row in await site.store.segments.after(0, limit=10**6)}
    files = {str(path.relative_to(site.media)): path for path in site.media.glob("*/*/*.ts")}
    if rows.keys() != files.keys():
        raise Broken(f"rows and files differ: {sorted(rows.keys() ^ files.keys())}")
    if left := [path.name for path in site.media.glob(f"*/*/*{PART_SUFFIX}")]:
        raise Broken(f"left half written: {left}")
    for path, sha256 in promises.segments.items():
        if path not in promises.deleting and (path not in files or _sha256(files[path]) != sha256):
            raise Broken(f"segment {path} is {'gone' if path not in files else 'another one'}")
    parts = {Path(name).stem: data for name, data in written.items()}
    for path, file in files.items():
        data = file.read_bytes()
        if len(data) != rows[path].size or not parts[file.name.partition("_")[0]].startswith(data):
            raise Broken(f"{path} is not what was recorded")
    for segment in site.saved:
        shown = _decoded(files[segment.path].read_bytes())
        if shown != segment.frames:
            raise Broken(f"{segment.path} was saved with {segment.frames} pictures and shows {shown}")
    if promises.damaged:
        return  # numbers go on far above those of rows that may be lost, which no link leads over
    number, head = await site.store.chain_links.head(CAMERA)
    leaves = await site.chain.leaves(CAMERA, after=0, before=number + 1)
    if leaves is None or walked(GENESIS, leaves) != head:
        raise Broken("the chain of footage is broken")


def _decoded(data: bytes) -> int:
    """Return the number of pictures. Raises Broken for any error of the decoder."""
    try:
        with (
            av.logging.Capture() as said,
            av.open(io.BytesIO(data), format="mpegts", options={"err_detect": "explode"}) as container,
        ):
            stream = container.streams.video[0]
            stream.codec_context.options = {"err_detect": "explode"}
            shown = sum(1 for _ in container.decode(stream))
    except av.error.FFmpegError as error:
        raise Broken(f"a segment does not play: {error}") from error
    if wrong := [text for level, _, text in said if level <= av.logging.ERROR]:
        raise Broken(f"a segment plays with errors: {wrong}")
    return shown


async def _judge_evidence(site: Site, promises: Promises) -> None:
    there = {item.id: item for item in await site.store.evidence.all()}
    for number, sha256 in promises.evidence.items():
        item = there.get(number)
        if item is None or item.missing:
            raise Broken(f"evidence {number} is gone")
        if _sha256(site.evidence.path(item)) != sha256:
            raise Broken(f"evidence {number} is another one")


def _judge_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise Broken(f"{path.name} is damaged: {said}")


def _expect(promised: dict[int, str], there: dict[int, str], what: str) -> None:
    if wrong := [number for number, text in promised.items() if there.get(number) != text]:
        raise Broken(f"{len(wrong)} {what} are gone or changed, {wrong[:5]} among them")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
