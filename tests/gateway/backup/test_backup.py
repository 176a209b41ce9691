"""Backups taken of a store that is written meanwhile, restored on another box, and broken ones."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import random
import shutil
import tarfile
import tracemalloc
from functools import partial

import pytest

from gateway.backup.archive import SCRYPT_COST, pack, read_manifest, usual_name
from gateway.backup.making import FilePlaces, make_backup
from gateway.backup.restoring import restore, verify
from gateway.domain.errors import ConfigError, GatewayError, StoreError
from gateway.runtime.data_folder import DataFolder
from gateway.store import Entry, Session
from tests.gateway.store.conftest import event, moment, opened
from tests.gateway.store.test_segments import finished

__all__ = ["event", "moment", "opened"]

PASSPHRASE = "yard works in the north"
SECRET = "hunter2-hunter2"
SITE = '[site]\nname = "Small"\n'


def place(folder) -> FilePlaces:
    """A box: its settings and its data folder."""
    (folder / "etc").mkdir(parents=True)
    (folder / "data").mkdir(mode=0o750)
    return FilePlaces(site_file=folder / "etc" / "site.toml", data=folder / "data")


@pytest.fixture
def box(tmp_path) -> FilePlaces:
    """The box that is backed up."""
    box = place(tmp_path / "box")
    box.site_file.write_text(SITE)
    for name, text in (("profiles/own.toml", "[profile]"), ("secrets/central", SECRET), ("tls/key.pem", SECRET)):
        path = box.site_file.parent / name
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(0o600)
    (box.data / "second-factor.key").write_bytes(SECRET.encode())
    return box


@pytest.fixture
def other(tmp_path) -> FilePlaces:
    """The box that takes its place."""
    return place(tmp_path / "other")


def backed_up(box, file, *, made_at="2026-01-01T12:00:00.000000Z", **options):
    make_backup(box, file, passphrase=PASSPHRASE, site="Small", version="1.2.3", made_at=made_at, **options)
    return file


def manifest_of(file):
    return read_manifest(file, passphrase=PASSPHRASE)


def members_of(file) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}


def packed(file, members):
    with tarfile.open(file, "w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return file


async def event_ids(store) -> list[int]:
    return [each.id for each in reversed(await store.events.latest(limit=100_000))]


def test_a_passphrase_costs_who_guesses_64_mebibytes():
    assert 128 * 8 * SCRYPT_COST == 64 * 2**20  # as it was imported: the tests derive at less


async def test_a_backup_beside_a_writing_gateway_has_all_that_was_recorded_before_it_began(
    opened, event, box, other, tmp_path
):
    async with opened(box.data) as store:
        writing = asyncio.Event()

        async def write() -> None:
            while not writing.is_set():
                await store.journal.record(Entry(events=(event(),)))

        for _ in range(50):
            await store.journal.record(Entry(events=(event(),)))
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            before = await event_ids(store)
            await asyncio.to_thread(backed_up, box, tmp_path / "b.tar.gz")
            writing.set()
        after = await event_ids(store)
    restore(tmp_path / "b.tar.gz", other, passphrase=PASSPHRASE)
    async with opened(other.data) as store:
        kept = await event_ids(store)
        assert after[: len(kept)] == kept
        assert len(before) <= len(kept) < len(after)


async def test_a_restored_gateway_gives_no_id_again_and_looks_before_it_sends(
    opened, event, moment, box, other, tmp_path
):
    async with opened(box.data) as store:
        await store.journal.record(Entry(events=(event(),), moments=(moment(),)))
        await store.accounts.add("chief", password_hash="x", role="administrator", now=1)
        await store.sessions.add("token", Session(username="chief", created_at=1, last_seen_at=1, expires_at=2**60))
        await asyncio.to_thread(backed_up, box, tmp_path / "b.tar.gz")
        lost = [(await store.journal.record(Entry(events=(event(),)))).event_ids[0] for _ in range(100)]
    restore(tmp_path / "b.tar.gz", other, passphrase=PASSPHRASE)
    async with opened(other.data) as store:
        assert store.salvaged
        assert (await store.journal.record(Entry(events=(event(),)))).event_ids[0] > lost[-1] + 100_000
        rows = await store.outbox.due(now=2**62)
        assert rows
        assert all(row.begun for row in rows if row.record_id < 2**31)
        assert [account.username for account in await store.accounts.all()] == ["chief"]
        assert await store.sessions.get("token") is None


def test_secrets_come_back_as_they_were_and_stand_nowhere_in_the_clear(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    file = backed_up(box, tmp_path / "b.tar.gz")
    assert SECRET.encode() not in gzip.decompress(file.read_bytes())
    with pytest.raises(ConfigError, match="the passphrase is wrong"):
        restore(file, other, passphrase="yard works in the south")
    assert not other.site_file.exists()
    restore(file, other, passphrase=PASSPHRASE)
    for name in ("site.toml", "profiles/own.toml", "secrets/central", "tls/key.pem"):
        was, now = box.site_file.parent / name, other.site_file.parent / name
        assert now.read_bytes() == was.read_bytes()
        assert now.stat().st_mode == was.stat().st_mode
    assert (other.data / "second-factor.key").read_bytes() == SECRET.encode()


def test_what_lies_beside_the_site_file_is_sealed_the_passphrase_too(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    beside = box.site_file.parent
    (beside / "backup-passphrase").write_text(PASSPHRASE)  # where it was put before
    (beside / "mqtt-key.pem").write_text(SECRET)
    file = backed_up(box, tmp_path / "b.tar.gz")
    clear = gzip.decompress(file.read_bytes())
    assert PASSPHRASE.encode() not in clear
    assert SECRET.encode() not in clear
    restore(file, other, passphrase=PASSPHRASE)
    assert (other.site_file.parent / "backup-passphrase").read_text() == PASSPHRASE
    assert (other.site_file.parent / "mqtt-key.pem").read_text() == SECRET


def test_no_link_beside_the_site_file_is_followed(opened, box, tmp_path):
    """A program that may write to the site file's folder must not lead root's reading elsewhere."""
    asyncio.run(used(opened, box))
    (tmp_path / "shadow").write_text(SECRET)
    (box.site_file.parent / "innocent.toml").symlink_to(tmp_path / "shadow")
    file = backed_up(box, tmp_path / "b.tar.gz", with_secrets=False)
    assert SECRET.encode() not in gzip.decompress(file.read_bytes())


def test_a_data_folder_beside_the_site_file_is_packed_once(opened, box, tmp_path):
    inside = FilePlaces(site_file=box.site_file, data=box.site_file.parent / "data")
    inside.data.mkdir(mode=0o750)
    asyncio.run(used(opened, inside))
    file = backed_up(inside, tmp_path / "b.tar.gz")
    assert not [name for name in manifest_of(file).members if name.startswith("site/data")]


def test_a_member_that_is_larger_than_its_manifest_says_is_refused(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    members = members_of(backed_up(box, tmp_path / "b.tar.gz"))
    members["data/site.db"] += b"x"
    evil = packed(tmp_path / "evil.tar.gz", members)
    with pytest.raises(StoreError, match=r"data/site\.db in the backup is damaged: its size is wrong"):
        restore(evil, other, passphrase=PASSPHRASE)


def test_secrets_can_be_left_out_of_a_backup_and_of_a_restore(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    file = backed_up(box, tmp_path / "b.tar.gz", with_secrets=False)
    assert not manifest_of(file).has_secrets
    restore(backed_up(box, tmp_path / "whole.tar.gz"), other, passphrase=PASSPHRASE, with_secrets=False)
    assert not (other.site_file.parent / "secrets").exists()
    restore(file, other, passphrase=PASSPHRASE, replace=True)
    assert not (other.site_file.parent / "secrets").exists()
    assert other.site_file.read_text() == SITE


def test_a_broken_backup_changes_nothing(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    whole = backed_up(box, tmp_path / "b.tar.gz").read_bytes()
    drawn = random.Random(seed := random.randrange(2**32))
    print("seed", seed)
    broken = tmp_path / "broken.tar.gz"
    for _ in range(30):
        at = drawn.randrange(len(whole))
        broken.write_bytes(whole[:at] if drawn.random() < 0.5 else whole[:at] + b"\x5a\xa5" + whole[at + 2 :])
        try:
            restore(broken, other, passphrase=PASSPHRASE)
        except GatewayError:
            assert not other.site_file.exists()
            assert not (other.data / "site.db").exists()
            assert not list(other.data.glob(".restore-*"))
        else:  # what was hit says nothing, such as the time in the head of the archive
            shutil.rmtree(other.data.parent)
            place(other.data.parent)


async def test_restored_databases_are_closed_to_others_and_no_link_is_followed(opened, box, other, tmp_path):
    """A program that may write to the data folder must not lead root's writing elsewhere."""
    async with opened(box.data):
        backed_up(box, tmp_path / "b.tar.gz")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    for name in (".site.db.new", ".cards.db.new"):
        (other.data / name).symlink_to(elsewhere)
    restore(tmp_path / "b.tar.gz", other, passphrase=PASSPHRASE)
    assert elsewhere.read_text() == "kept"
    for name in ("site.db", "cards.db"):
        assert (other.data / name).stat().st_mode & 0o777 & ~0o640 == 0
        assert not (other.data / name).is_symlink()


def test_a_running_gateway_is_not_restored_over(opened, box, tmp_path):
    asyncio.run(used(opened, box))
    file = backed_up(box, tmp_path / "b.tar.gz")
    with DataFolder.open(box.data), pytest.raises(ConfigError, match="in use by another edge-gateway"):
        restore(file, box, passphrase=PASSPHRASE, replace=True)


def test_what_is_there_is_kept_beside_what_takes_its_place(opened, event, box, tmp_path):
    asyncio.run(used(opened, box))
    file = backed_up(box, tmp_path / "b.tar.gz")

    async def later() -> int:
        async with opened(box.data) as store:
            return (await store.journal.record(Entry(events=(event(),)))).event_ids[0]

    newest = asyncio.run(later())
    box.site_file.write_text(SITE.replace("Small", "Large"))
    with pytest.raises(ConfigError, match=r"site\.db is there already; --replace keeps"):
        restore(file, box, passphrase=PASSPHRASE)
    restore(file, box, passphrase=PASSPHRASE, replace=True)
    assert box.site_file.read_text() == SITE
    assert "Large" in box.site_file.with_name("site.toml.before-restore-1").read_text()
    assert (box.data / "site.db.before-restore-1").exists()
    assert asyncio.run(later()) >= newest + 1_000_000


def test_a_backup_that_names_a_place_outside_is_refused(opened, box, other, tmp_path):
    asyncio.run(used(opened, box))
    manifest = manifest_of(backed_up(box, tmp_path / "b.tar.gz"))
    outside = "data/../../x.log"
    manifest = manifest.model_copy(update={"members": {outside: manifest.members["data/access.log"]}})
    evil = tmp_path / "evil.tar.gz"
    pack(evil, manifest, {outside: partial((box.data / "access.log").open, "rb")}, passphrase=PASSPHRASE)
    with pytest.raises(StoreError, match="which no backup does"):
        restore(evil, other, passphrase=PASSPHRASE)
    assert not list(tmp_path.glob("**/x.log"))


def _resummed(members):
    """The members with a manifest whose sums are right again, as anybody can make it."""
    manifest = json.loads(members["manifest.json"])
    for name, member in manifest["members"].items():
        member.update(size=len(members[name]), sha256=hashlib.sha256(members[name]).hexdigest())
    return {**members, "manifest.json": json.dumps(manifest, indent=1).encode()}


def _fields(value, path=()):
    """The places of all plain values in a manifest."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _fields(inner, (*path, key))
    else:
        yield path


def _forgeries(members, others):
    """Backups that somebody without the passphrase can make of two that were made with it."""
    manifest = json.loads(members["manifest.json"])
    without = dict(manifest, has_secrets=False)
    without["members"] = {name: each for name, each in manifest["members"].items() if name != "sealed"}
    plain = {"manifest.json": json.dumps(without).encode()} | {
        name: content for name, content in members.items() if name not in ("manifest.json", "sealed")
    }
    yield "site.db", _resummed({**members, "data/site.db": members["data/site.db"] + b"\0"})
    yield "site.toml", _resummed({**members, "site/site.toml": b'[site]\nname = "Mine"\n'})
    yield "swapped", _resummed({**members, "data/site.db": others["data/site.db"]})
    yield "swapped secrets", _resummed({**members, "sealed": others["sealed"]})
    yield "another's manifest", {**members, "manifest.json": others["manifest.json"]}
    yield "another's proof", {**members, "manifest.proof": others["manifest.proof"]}
    yield "no proof", {name: content for name, content in members.items() if name != "manifest.proof"}
    yield "proof at the end", {**{n: c for n, c in members.items() if n != "manifest.proof"}, "manifest.proof": b""}
    yield "empty proof", {**members, "manifest.proof": b""}
    yield "short proof", {**members, "manifest.proof": members["manifest.proof"][:-1]}
    yield "no salt", {**members, "manifest.proof": b"edge-gateway proof 1\n"}
    yield "secrets taken out", plain
    yield "an older form", {name: content for name, content in plain.items() if name != "manifest.proof"}
    yield "one more", {**members, "data/cards.db-wal": b"x"}
    yield "one less", {name: content for name, content in members.items() if name != "data/access.log"}


def test_nobody_without_the_passphrase_makes_a_backup_that_is_taken(opened, event, box, other, tmp_path):
    asyncio.run(used(opened, box))
    members = members_of(backed_up(box, tmp_path / "1.tar.gz"))
    (box.site_file.parent / "secrets" / "central").write_text("another")
    asyncio.run(used(opened, box, "guard"))
    others = members_of(backed_up(box, tmp_path / "2.tar.gz"))
    for case, forged in _forgeries(members, others):
        file = packed(tmp_path / f"{case}.tar.gz", forged)
        with pytest.raises((ConfigError, StoreError)):
            restore(file, other, passphrase=PASSPHRASE)
        assert not other.site_file.exists(), case
        assert not (other.data / "site.db").exists(), case


def _pax(records):
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, len(records)
    return header.tobuf() + records.ljust(-(-len(records) // 512) * 512, b"\0")


def _record(name, value):
    length = len(name) + len(value) + 3
    while len(text := f"{length} {name}={value}\n") != length:
        length = len(text)
    return text.encode()


def _long_name(mark):
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = mark, LARGE
    return header.tobuf() + bytes(LARGE)


def _sparse_map():
    header = tarfile.TarInfo("manifest.json")
    header.size = LARGE
    marks = _record("GNU.sparse.major", "1") + _record("GNU.sparse.minor", "0") + _record("GNU.sparse.name", "m")
    entries = f"{LARGE // 4}\n".encode() + b"1\n" * (LARGE // 2)
    return _pax(marks) + header.tobuf() + entries[:LARGE]


LARGE = 16 * 1024 * 1024
HEADERS = {
    "a pax header": lambda: _pax(_record("comment", "a" * LARGE)),
    "many pax headers": lambda: _pax(_record("comment", "a" * 400)) * 5000,
    "a long name": lambda: _long_name(tarfile.GNUTYPE_LONGNAME),
    "a long link": lambda: _long_name(tarfile.GNUTYPE_LONGLINK),
    "a sparse map": _sparse_map,
}


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("place", ["first", "second"])
def test_an_unproven_file_takes_little_memory_however_large_its_headers_are(tmp_path, headers, place):
    file = tmp_path / "b.tar.gz"
    first = tarfile.TarInfo("manifest.json")
    before = b"" if place == "first" else first.tobuf()
    file.write_bytes(gzip.compress(before + HEADERS[headers]() + tarfile.TarInfo("manifest.proof").tobuf(), 1))
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=r"b.tar.gz cannot be read: the file is no backup"):
            manifest_of(file)
        assert tracemalloc.get_traced_memory()[1] < LARGE / 8
    finally:
        tracemalloc.stop()


def test_each_field_of_a_manifest_is_proven(opened, box, tmp_path):
    asyncio.run(used(opened, box))
    members = members_of(backed_up(box, tmp_path / "b.tar.gz"))
    whole = json.loads(members["manifest.json"])
    tried = [path for path in _fields(whole) if path[0] != "members" or path[1] == "site/site.toml"]
    assert len(tried) > 10
    for path in tried:
        changed = json.loads(members["manifest.json"])
        last = changed
        for key in path[:-1]:
            last = last[key]
        was = last[path[-1]]
        last[path[-1]] = (not was) if isinstance(was, bool) else was + 1 if isinstance(was, int) else f"{was}x"
        forged = {"manifest.json": json.dumps(changed, indent=1).encode(), "manifest.proof": members["manifest.proof"]}
        with pytest.raises(ConfigError, match="or somebody changed it without the passphrase"):
            manifest_of(packed(tmp_path / "forged.tar.gz", forged))
        (tmp_path / "forged.tar.gz").unlink()


def test_a_backup_of_an_older_program_is_refused_with_the_remedy(opened, box, tmp_path):
    asyncio.run(used(opened, box))
    members = members_of(backed_up(box, tmp_path / "b.tar.gz"))
    del members["manifest.proof"]
    with pytest.raises(ConfigError, match=r"does not prove that it was made with .*: restore another backup"):
        verify(packed(tmp_path / "old.tar.gz", members), passphrase=PASSPHRASE)


def test_an_older_backup_under_the_name_of_a_newer_one_is_refused(opened, box, tmp_path):
    asyncio.run(used(opened, box))
    older = backed_up(box, tmp_path / usual_name("2026-01-01T12:00:00.000000Z"))
    assert verify(older, passphrase=PASSPHRASE)
    newer = older.rename(tmp_path / usual_name("2026-01-02T12:00:00.000000Z"))
    with pytest.raises(ConfigError, match="is the backup of 2026-01-01T12:00:00 UTC under another one's name"):
        verify(newer, passphrase=PASSPHRASE)
    assert verify(newer.rename(tmp_path / "older.backup.tar.gz"), passphrase=PASSPHRASE)


def test_a_backup_is_checked_without_restoring_it(opened, box, tmp_path):
    asyncio.run(used(opened, box))
    file = backed_up(box, tmp_path / "b.tar.gz")
    assert verify(file, passphrase=PASSPHRASE).site == "Small"
    with pytest.raises(StoreError, match="is no backup, or is cut short"):
        verify(box.site_file, passphrase=PASSPHRASE)
    with pytest.raises(ConfigError, match="there is no file"):
        verify(tmp_path / "nowhere.tar.gz", passphrase=PASSPHRASE)
    with pytest.raises(ConfigError, match="is there already"):
        backed_up(box, file)


@pytest.fixture
async def footage(opened, event, moment, box) -> dict[str, bytes]:
    """Footage and evidence of the box, by names in the media folder; events hold the first two files."""
    files = {}
    async with opened(box.data) as store:
        await store.journal.record(Entry(events=(event(),), moments=(moment(),)))
        segments = [finished(number) for number in (0, 1, 900)]
        await store.segments.add(segments)
        for name in (*(segment.path for segment in segments), f"evidence/{'a' * 32}", f"evidence/{'b' * 32}.part"):
            path = box.data / "media" / name
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            path.write_bytes(files.setdefault(name, name.encode() * 1000))
    return files


def media_of(box) -> dict[str, bytes]:
    media = box.data / "media"
    return {str(path.relative_to(media)): path.read_bytes() for path in media.glob("*/**/*") if path.is_file()}


def test_footage_that_events_hold_comes_back_when_it_was_asked_for(footage, box, other, tmp_path):
    without = manifest_of(backed_up(box, tmp_path / "small.tar.gz"))
    assert not [name for name in without.members if name.startswith("media/")]
    file = backed_up(box, tmp_path / "b.tar.gz", with_footage=True)
    restore(file, other, passphrase=PASSPHRASE)
    held = [*list(footage)[:2], f"evidence/{'a' * 32}"]
    assert media_of(other) == {name: footage[name] for name in held}
    assert all((other.data / "media" / name).stat().st_mode & 0o777 & ~0o640 == 0 for name in held)
    restore(file, box, passphrase=PASSPHRASE, replace=True)
    assert media_of(box) == footage


def test_no_link_among_footage_is_followed_either_way(footage, box, other, tmp_path):
    """A program that may write to the media folder must not lead root's reading or writing elsewhere."""
    first, second = (box.data / "media" / name for name in list(footage)[:2])
    whole = backed_up(box, tmp_path / "whole.tar.gz", with_footage=True)
    (tmp_path / "shadow").write_text(SECRET)
    first.unlink()
    first.symlink_to(tmp_path / "shadow")
    file = backed_up(box, tmp_path / "b.tar.gz", with_footage=True)
    assert SECRET.encode() not in gzip.decompress(file.read_bytes())
    assert second.read_bytes() in gzip.decompress(file.read_bytes())
    (other.data / "media").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (other.data / "media" / first.relative_to(box.data / "media").parts[0]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="where a link leads elsewhere; remove the link"):
        restore(whole, other, passphrase=PASSPHRASE)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not other.site_file.exists()


def test_footage_is_not_put_where_its_disk_belongs(footage, box, other, tmp_path):
    file = backed_up(box, tmp_path / "b.tar.gz", with_footage=True)
    with DataFolder.open(other.data) as data:
        (marker,) = (path for path in data.media.iterdir() if path.is_file())
    marker.unlink()  # as while another disk is not mounted
    with pytest.raises(ConfigError, match=r"footage cannot be put into .*; mount its disk there first"):
        restore(file, other, passphrase=PASSPHRASE)
    assert not other.site_file.exists()


async def used(opened, box, username="chief") -> None:
    """Let a gateway run there once."""
    async with opened(box.data) as store:
        await store.accounts.add(username, password_hash="x", role="administrator", now=1)
