"""Promise: evidence is whole on disk with its row, or neither is there; through kill -9, full disks and quitters."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lacks import lacks

from gateway.domain.errors import CameraUnavailable, NotFoundError, StoreError
from gateway.domain.events import EventKind
from gateway.domain.evidence import KeptAs, Labels, TooLarge
from gateway.recording.evidence_files import FOLDER, EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.store import EventFilter, Store, TooMany

PROGRAM = Path(__file__).with_name("uploading_program.py")
ROUNDS = 5
MOUNT = ("mount", "-t", "tmpfs", "-o", "size=2m", "none")
LABELS = Labels("scene.jpg", "", KeptAs.INCIDENT, "chief")


@pytest.fixture
def shelf(store, clock, tmp_path):
    """Evidence beside the store, with what was said wrong of the folder and its limits."""

    def make(*, fault="", media=None, **limits):
        limits = {"bytes_each": 5_000_000, "per_event": 3, "floor": 0, **limits}
        return EvidenceFiles(
            store=store, media=media or tmp_path, clock=clock, fault=lambda: fault, limits=EvidenceLimits(**limits)
        )

    return make


async def kept(files, camera_event, data, labels=LABELS):
    async with files.receive() as incoming:
        await incoming.write(data)
        await incoming.finish()
        return await incoming.keep(camera_event, labels)


def there(folder):
    return {path.name for path in (folder / FOLDER).iterdir()}


def acknowledged_until_killed(folder, lines):
    said = {}
    with subprocess.Popen([sys.executable, str(PROGRAM), str(folder)], stdout=subprocess.PIPE, text=True) as program:
        try:
            for line in program.stdout:
                if not line.endswith("\n"):
                    break
                number, sha256, file = line.split()
                said[int(number)] = (sha256, file)
                if len(said) == lines:
                    program.send_signal(signal.SIGKILL)
        finally:
            program.kill()
    return said


async def evidence_told(store):
    """The ids of evidence that events tell of, as often as they do."""
    page = await store.events.page(EventFilter(types=(int(EventKind.EVIDENCE_ADDED),)), limit=10_000)
    return sorted(json.loads(event.data)["evidence_id"] for event in page.events)


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS, marks=pytest.mark.long("rounds of kills"))])
async def test_after_kill_9_rows_and_files_are_the_same_and_nothing_acknowledged_is_missing(tmp_path, clock, rounds):
    known: dict[int, tuple[str, str]] = {}
    for number in range(rounds):
        said = acknowledged_until_killed(tmp_path, random.randint(1, 25))
        assert said
        assert not known.keys() & said.keys()
        known |= said
        store = Store(folder=tmp_path, site_name="North", sends=True)
        await store.open()
        files = EvidenceFiles(
            store=store, media=tmp_path, clock=clock, fault=lambda: "", limits=EvidenceLimits(1, 1, 0)
        )
        await files.open()
        rows = {row.id: row for row in await store.evidence.all()}
        announced = await evidence_told(store)
        await store.close()
        assert {row.file for row in rows.values()} == there(tmp_path), f"round {number}"
        assert announced == sorted(rows), "each is told of once, and none that is not whole"
        for row in rows.values():
            content = (tmp_path / FOLDER / row.file).read_bytes()
            assert (hashlib.sha256(content).hexdigest(), len(content)) == (row.sha256, row.size)
        assert known == {key: (rows[key].sha256, rows[key].file) for key in known}, f"round {number}"


async def test_what_is_not_kept_leaves_nothing(shelf, pin, store, tmp_path):
    files = shelf()
    await files.open()
    event = await pin(1, before=1, after=1)
    with pytest.raises(TooLarge):
        await kept(files, event, b"x" * 5_000_001)
    async with files.receive() as incoming:
        await incoming.write(b"never kept")
        await incoming.finish()
    assert there(tmp_path) == set()
    for number in range(3):
        await kept(files, event, b"%d" % number)
    with pytest.raises(TooMany):
        await kept(files, event, b"one more")
    assert len(there(tmp_path)) == 3
    assert len(await store.evidence.all()) == 3


async def test_an_upload_that_is_given_up_leaves_nothing(shelf, tmp_path):
    files = shelf()
    await files.open()
    begun = asyncio.Event()

    async def upload():
        async with files.receive() as incoming:
            await incoming.write(b"x" * 2_000_000)
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(upload())
    await begun.wait()
    assert len(there(tmp_path)) == 1
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert there(tmp_path) == set()


async def test_the_same_bytes_are_one_piece_of_evidence(shelf, pin, tmp_path):
    files = shelf()
    await files.open()
    event, other = await pin(1, before=1, after=1), await pin(1, before=1, after=1)
    first = await kept(files, event, b"the same")
    again = await kept(files, event, b"the same", Labels("other name.jpg", "", KeptAs.TRANSACTION, "guard"))
    elsewhere = await kept(files, other, b"the same")
    assert again == first
    assert elsewhere.id != first.id
    assert there(tmp_path) == {first.file, elsewhere.file}


async def test_a_disk_that_takes_no_more_is_told_and_nothing_stays(shelf, pin, store, tmp_path):
    event = await pin(1, before=1, after=1)
    files = shelf(floor=10**18)
    await files.open()
    with pytest.raises(StoreError, match="disk takes no more; nothing of the file was kept"):
        await kept(files, event, b"x" * 2_000_000)
    assert there(tmp_path) == set()
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run([*MOUNT, disk], check=False).returncode:
        lacks("a small disk cannot be mounted here")
    try:
        files = shelf(media=disk)
        await files.open()
        with pytest.raises(StoreError, match="disk takes no more; nothing of the file was kept"):
            await kept(files, event, b"x" * 4_000_000)
        assert there(disk) == set()
        assert await store.evidence.all() == ()
        small = await kept(files, event, b"fits")
        assert there(disk) == {small.file}
    finally:
        subprocess.run(["umount", disk], check=True)


async def test_nothing_is_taken_while_the_media_folder_is_away(shelf, pin):
    event = await pin(1, before=1, after=1)
    with pytest.raises(CameraUnavailable, match="not ready yet"):
        await kept(shelf(), event, b"x")
    with pytest.raises(CameraUnavailable, match="unmounted"):
        await kept(shelf(fault="unmounted"), event, b"x")


async def test_a_file_that_went_missing_is_told_once_and_comes_back(shelf, pin, store, tmp_path):
    files = shelf()
    await files.open()
    one = await kept(files, await pin(1, before=1, after=1), b"scene")
    path, aside = tmp_path / FOLDER / one.file, tmp_path / "aside"
    path.rename(aside)
    for _ in range(2):
        await files.open()
    (row,) = await store.evidence.all()
    assert row.missing
    with pytest.raises(NotFoundError, match="gone"):
        files.path(row)
    told = await store.events.page(EventFilter(types=(int(EventKind.EVIDENCE_MISSING),)))
    assert len(told.events) == 1
    aside.rename(path)
    await files.open()
    (row,) = await store.evidence.all()
    assert files.path(row).read_bytes() == b"scene"


async def test_what_is_let_go_of_goes_with_its_file_and_foreign_files_stay(shelf, pin, store, tmp_path):
    files = shelf()
    await files.open()
    event = await pin(1, before=1, after=1)
    one = await kept(files, event, b"kept as a transaction", Labels("a", "", KeptAs.TRANSACTION, "chief"))
    two = await kept(files, event, b"kept as an incident")
    for number in (1, 2):  # nothing is old that was not seen by a trusted clock; from then on its days count
        await files.expire(transactions_before=number, incidents_before=0)
    (tmp_path / FOLDER / "notes.txt").write_text("a technician's")
    await files.expire(transactions_before=2**60, incidents_before=0)
    assert there(tmp_path) == {one.file, two.file, "notes.txt"}, "central has neither yet"
    for central_id in (None, 77):
        await store.evidence.sent(await store.evidence.due(now=2**62), central_id=central_id)
    await files.expire(transactions_before=2**60, incidents_before=0)
    assert there(tmp_path) == {two.file, "notes.txt"}
    assert [row.id for row in await store.evidence.all()] == [two.id]
    assert await store.evidence.bytes_kept() == two.size
    await files.open()
    assert there(tmp_path) == {two.file, "notes.txt"}


async def test_a_whole_file_that_lost_its_row_without_a_crash_is_set_aside(shelf, pin, store, tmp_path):
    files = shelf()
    await files.open()
    one = await kept(files, await pin(1, before=1, after=1), b"the only copy")
    await store.database.write(lambda connection: connection.execute("DELETE FROM evidence"))
    (tmp_path / FOLDER / ("0" * 32 + ".part")).write_bytes(b"half of one")
    for _ in range(2):
        await files.open()
        assert there(tmp_path) == {f"{one.file}.found"}
    assert (tmp_path / FOLDER / f"{one.file}.found").read_bytes() == b"the only copy"


async def test_one_file_that_cannot_be_removed_keeps_nothing_else(shelf, pin, store, tmp_path):
    files = shelf()
    await files.open()
    event = await pin(1, before=1, after=1)
    one, two = await kept(files, event, b"one"), await kept(files, event, b"two")
    path = tmp_path / FOLDER / one.file
    path.unlink()
    path.mkdir()  # no file any more, so that it cannot be removed as one
    await store.database.write(lambda connection: connection.execute("UPDATE evidence SET garbage = 1"))
    await files.delete_let_go()
    assert there(tmp_path) == {one.file}
    assert [row.id for row in await store.evidence.garbage()] == [one.id]
    path.rmdir()
    await files.delete_let_go()
    assert await store.evidence.garbage() == ()
    assert two.id not in {row.id for row in await store.evidence.all()}
