"""Backup and restore by root, while the gateway's own user has put links everywhere that it may write."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
from contextlib import suppress

import pytest

from gateway.backup.archive import read_manifest
from gateway.backup.making import FilePlaces, make_backup
from gateway.backup.restoring import restore
from gateway.domain.errors import GatewayError
from tests.gateway.store.conftest import opened

__all__ = ["opened"]

USER = 12345
PASSPHRASE = "yard works in the north"
SECRET = b"root alone reads this\n" * 40
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")


@pytest.fixture
def tmp_path(reachable_path):
    """A folder that the gateway's own user reaches."""
    return reachable_path


@pytest.fixture
def shadow(tmp_path):
    """A file that root alone may read."""
    file = tmp_path / "root" / "shadow"
    file.parent.mkdir(mode=0o700)
    file.touch(mode=0o600)
    file.write_bytes(SECRET)
    return file


@pytest.fixture
def box(tmp_path, opened):
    """A box on which a gateway has run by its own user, who owns the folders."""
    box = FilePlaces(site_file=tmp_path / "box" / "etc" / "site.toml", data=tmp_path / "box" / "data")

    async def used() -> None:
        async with opened(box.data) as store:
            await store.accounts.add("chief", password_hash="x", role="administrator", now=1)

    box.data.mkdir(parents=True)
    asyncio.run(used())
    (box.data / "second-factor.key").write_bytes(b"key")
    for name in ("site.toml", "profiles/own.toml", "secrets/central", "tls/key.pem"):
        file = box.site_file.parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('[site]\nname = "Small"\n')
    for path in ((tmp_path / "box"), *(tmp_path / "box").rglob("*")):
        os.chown(path, USER, USER)
    return box


def backed_up(box, file, left_out=lambda _: None, **more):
    make_backup(
        box, file, passphrase=PASSPHRASE, site="", version="1", made_at="2026-01-01T12:00:00.000000Z",
        left_out=left_out, **more,
    )  # fmt: skip
    return file


PLACES = (
    "data/access.log",
    "data/second-factor.key",
    "data/site.db",
    "data/cards.db",
    "data/site.db-wal",
    "etc/site.toml",
    "etc/profiles/own.toml",
    "etc/profiles",
    "etc/secrets/central",
    "etc/secrets",
    "etc/tls",
    "data/media/evidence",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_no_link_brings_a_file_of_root_into_a_backup(place, link, box, shadow, tmp_path):
    name, is_folder = tmp_path / "box" / place, (tmp_path / "box" / place).is_dir() or "evidence" in place
    if is_folder and link == "hard":
        pytest.skip("a folder has no hard links")
    shutil.rmtree(name) if name.is_dir() else name.unlink(missing_ok=True)
    name.parent.mkdir(parents=True, exist_ok=True)
    if link == "hard":
        name.hardlink_to(shadow)
    else:
        name.symlink_to(shadow.parent if is_folder else shadow)
    told: list[str] = []
    file = tmp_path / "b.tar.gz"
    with suppress(GatewayError):  # what cannot be backed up without it is refused
        backed_up(box, file, told.append, with_secrets=False, with_footage=True)
    if file.exists():
        assert SECRET not in gzip.decompress(file.read_bytes())
        backed_up(box, tmp_path / "sealed.tar.gz", told.append)
        restore(
            tmp_path / "sealed.tar.gz", FilePlaces(tmp_path / "o/site.toml", tmp_path / "o/data"), passphrase=PASSPHRASE
        )
        restored = [path.read_bytes() for path in (tmp_path / "o").rglob("*") if path.is_file()]
        assert SECRET not in restored
    assert shadow.read_bytes() == SECRET


def test_what_is_left_out_is_told(box, shadow, tmp_path):
    (box.data / "access.log").unlink(missing_ok=True)
    (box.data / "access.log").symlink_to(shadow)
    (box.site_file.parent / "tls" / "key.pem").unlink()
    (box.site_file.parent / "tls" / "key.pem").symlink_to(shadow)
    told: list[str] = []
    file = backed_up(box, tmp_path / "b.tar.gz", told.append)
    assert sorted(told) == ["data/access.log", "site/tls/key.pem"]
    assert "data/access.log" not in read_manifest(file, passphrase=PASSPHRASE).members


def test_a_fifo_keeps_no_backup_waiting(box, tmp_path):
    for name in (box.data / "second-factor.key", box.site_file.parent / "secrets" / "central"):
        name.unlink()
        os.mkfifo(name)
    assert backed_up(box, tmp_path / "b.tar.gz").exists()


@pytest.mark.parametrize(
    "place",
    [
        "data/lock",
        "data/.probe",
        "data/run",
        "data/media",
        "data/media.uuid",
        "data/media.uuid.new",
        "data/media/.edge-gateway-media",
        "data/media/.edge-gateway-media.new",
        "data/media/.probe",
        "data/site.db",
        "data/.site.db.new",
        "data/site.db.ids",
        "data/access.log",
        "data/.access.log.new",
        "data/.second-factor.key.new",
        "etc/site.toml",
        "etc/.site.toml.new",
        "etc/secrets",
        "etc/profiles",
        "etc/profiles/.own.toml.new",
    ],
)
def test_no_link_leads_a_restore_to_a_file_of_root(place, box, shadow, tmp_path):
    file = backed_up(box, tmp_path / "b.tar.gz")
    before = sorted(path.name for path in shadow.parent.iterdir())
    name = tmp_path / "box" / place
    shutil.rmtree(name) if name.is_dir() else name.unlink(missing_ok=True)
    name.parent.mkdir(parents=True, exist_ok=True)
    os.chown(name.parent, USER, USER)
    name.symlink_to(shadow.parent if "." not in name.name and name.name != "lock" else shadow)
    with suppress(GatewayError):  # refused is well, too
        restore(file, box, passphrase=PASSPHRASE, replace=True)
    assert shadow.read_bytes() == SECRET
    assert (shadow.stat().st_uid, shadow.parent.stat().st_uid) == (0, 0)
    assert sorted(path.name for path in shadow.parent.iterdir()) == before
    found = [path for path in (tmp_path / "box").rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in found if path.read_bytes() == SECRET]


def test_what_root_restores_belongs_to_the_gateways_user(box, tmp_path):
    file = backed_up(box, tmp_path / "b.tar.gz")
    restore(file, box, passphrase=PASSPHRASE, replace=True)
    assert {path.name: path.stat().st_uid for path in box.data.iterdir() if path.stat().st_uid != USER} == {}
    assert os.geteuid() == 0
