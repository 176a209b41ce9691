"""Restoring of a backup into an empty data folder, or in place of what is there, which is kept beside it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.backup.archive import BackupManifest, unpack, unseal
from gateway.backup.making import MEDIA, SEALED, FilePlaces
from gateway.domain.errors import ConfigError, StoreError
from gateway.runtime.beneath import Beneath, NoPlainFile, acting_as_owner
from gateway.runtime.data_folder import DataFolder, MediaCondition
from gateway.store.engine.copies import check_copy, prepare_restored

_SIDE_FILES = ("", "-wal", "-shm", "-journal", ".closed", ".boot")
_BESIDE_DATABASE = (".ids", ".closed")
_ASIDE = "before-restore"
_MODE_OF_FOOTAGE = 0o640
_MOST_OF_DATA = 0o640
"""Permissions of a database, whatever a backup by another umask says."""


def verify(source: Path, *, passphrase: str, near: Path | None = None) -> BackupManifest:
    """Check a backup throughout: that it was made with the passphrase, every check sum, both databases, the secrets.

    `near`: the folder to unpack it in meanwhile, the backup's own if left out. Raises ConfigError, StoreError.
    """
    with _unpacked(source, near or source.parent, passphrase) as (manifest, _):
        return manifest


def restore(
    source: Path, place: FilePlaces, *, passphrase: str, with_secrets: bool = True, replace: bool = False
) -> BackupManifest:
    """Put the files of a backup in their places, the secrets too unless they are left out; the gateway must not run.

    With `replace` the databases and the site file that are there are kept beside the new ones. Nothing is changed
    unless the whole backup is good. Footage of the same name stays.

    Raises:
        ConfigError: the gateway runs, its data are there already, the backup was not made with the passphrase, or
            there is footage to put back and the media folder's disk is not mounted.
        StoreError: the backup is damaged, or there is no room.
    """
    try:
        with (
            _opened(place.data) as data,
            _unpacked(source, _near(data.path), passphrase, with_secrets=with_secrets) as (manifest, unpacked),
        ):
            used = [name for name in manifest.schemas if (place.data / name).exists()]
            if (used or place.site_file.exists()) and not replace:
                there = place.data / used[0] if used else place.site_file
                raise ConfigError(f"{there} is there already; --replace keeps what is there under another name")
            footage = _footage(unpacked, data)
            for name in manifest.schemas:
                _keep_ids(Beneath(place.data), f"{name}.ids", unpacked / "data")
                prepare_restored(unpacked / "data" / name)
            _put_site(unpacked / "site", manifest.site_file, place.site_file)
            _put_footage(footage, unpacked, place.data)
            _put_data(unpacked / "data", place.data)
    except NoPlainFile as error:
        raise ConfigError(f"{error}: remove what is there, which nothing is restored through") from error
    except OSError as error:
        raise StoreError(f"the backup cannot be restored: {error.strerror or error}") from error
    return manifest


@contextmanager
def _opened(path: Path) -> Iterator[DataFolder]:
    """Open the data folder with its owner's rights, since its owner may have put links in it."""
    with acting_as_owner(path):
        data = DataFolder.open(path)
    with data:
        yield data


def _near(data: Path) -> Path:
    """Return the folder to unpack in: near the data, but where root may do that out of the owner's reach."""
    return Path("/var/tmp") if os.geteuid() == 0 and data.stat().st_uid != 0 else data  # noqa: S108  # a new folder in it


def _keep_ids(data: Beneath, note: str, unpacked: Path) -> None:
    with contextlib.suppress(FileNotFoundError), data.open(note) as known, (unpacked / note).open("wb") as kept:
        shutil.copyfileobj(known, kept)


@contextmanager
def _unpacked(
    source: Path, near: Path, passphrase: str, *, with_secrets: bool = True
) -> Iterator[tuple[BackupManifest, Path]]:
    """Unpack a backup and check it throughout. Its secrets are in their places if they are wanted."""
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=near) as folder:
        unpacked = Path(folder)
        manifest = unpack(source, unpacked, passphrase=passphrase)
        for name in manifest.schemas:
            check_copy(unpacked / "data" / name)
        for name, member in manifest.members.items():
            (unpacked / name).chmod(member.mode)
            _give(unpacked / name, member.owner, member.group)
        if manifest.has_secrets and with_secrets:
            for name, secret in unseal((unpacked / SEALED).read_bytes(), passphrase).items():
                (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
                (unpacked / name).write_bytes(secret.content)
                (unpacked / name).chmod(secret.mode)
                _give(unpacked / name, secret.owner, secret.group)
        yield manifest, unpacked


def _put_site(unpacked: Path, named: str, site_file: Path) -> None:
    """Copy the site file and what lies beside it, with their owners. Other files of these names are kept."""
    site_file.parent.mkdir(parents=True, exist_ok=True)
    folder = Beneath(site_file.parent)
    for path in sorted(unpacked.rglob("*")):
        if not path.is_file():
            continue
        inside, found = str(path.relative_to(unpacked)), path.stat()
        name = site_file.name if inside == named else inside
        if folder.is_there(name) and not _is_same(folder, name, path):
            folder.set_aside(name, _ASIDE)
        owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
        with path.open("rb") as content:
            folder.put(name, content, mode=found.st_mode & 0o777, owner=owner)


def _is_same(folder: Beneath, name: str, path: Path) -> bool:
    try:
        with folder.open(name) as there:
            return there.read() == path.read_bytes()
    except NoPlainFile:
        return False


def _put_data(unpacked: Path, data: Path) -> None:
    """Copy the databases and what belongs to them into the data folder; those that are there are kept aside."""
    folder = Beneath(data)
    for path in sorted(unpacked.iterdir()):
        with path.open("rb") as content, acting_as_owner(data):
            if path.suffix == ".db":
                _set_database_aside(data / path.name)
            elif folder.is_there(path.name) and path.suffix not in _BESIDE_DATABASE:
                folder.set_aside(path.name, _ASIDE)
            folder.put(path.name, content, mode=os.fstat(content.fileno()).st_mode & _MOST_OF_DATA, owner=None)


def _set_database_aside(database: Path) -> None:
    aside = _free_name(database)
    for suffix in _SIDE_FILES:
        if os.path.lexists(before := database.with_name(f"{database.name}{suffix}")):
            before.rename(aside.with_name(aside.name + suffix))


def _footage(unpacked: Path, data: DataFolder) -> list[Path]:
    """Return the files of footage and evidence. Raises ConfigError if they cannot be put back."""
    found = sorted(path for path in (unpacked / MEDIA).rglob("*") if path.is_file())
    if found and data.media_condition is not MediaCondition.READY:
        raise ConfigError(f"footage cannot be put into {data.media}; mount its disk there first")
    folder = Beneath(data.path)
    try:
        for path in found:
            folder.is_there(str(path.relative_to(unpacked)))
    except NoPlainFile as error:
        raise ConfigError(
            f"footage cannot be put into {data.media}, where a link leads elsewhere; remove the link"
        ) from error
    return found


def _put_footage(footage: list[Path], unpacked: Path, data: Path) -> None:
    """Copy footage and evidence into the media folder, where none of that name is."""
    folder = Beneath(data)
    for path in footage:
        name = str(path.relative_to(unpacked))
        with path.open("rb") as content, acting_as_owner(data):
            if not folder.is_there(name):
                folder.put(name, content, mode=_MODE_OF_FOOTAGE, owner=None)
        path.unlink()  # large footage is not there twice


def _give(path: Path, owner: str, group: str) -> None:
    """Let a file belong to this user and group, where this machine has them and this user may do that."""
    if os.geteuid() == 0:
        for names in ({"user": owner}, {"group": group}):
            with contextlib.suppress(LookupError):
                shutil.chown(path, **names)


def _free_name(path: Path) -> Path:
    number = 1
    while os.path.lexists(path.with_name(f"{path.name}.{_ASIDE}-{number}")):
        number += 1
    return path.with_name(f"{path.name}.{_ASIDE}-{number}")
