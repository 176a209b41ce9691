"""Restoring of a backup into an empty data folder, or in place of what is there, which is kept beside it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.backup.archive import Manifest, unpack, unseal
from gateway.backup.making import MEDIA, SEALED, Place, is_plain
from gateway.domain.errors import ConfigError, StoreError
from gateway.runtime.data_folder import DataFolder, MediaCondition
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.copies import check_copy, prepare_restored

_SIDE_FILES = ("", "-wal", "-shm", "-journal", ".closed", ".boot")
_BESIDE_DATABASE = (".ids", ".closed")
_ASIDE = "before-restore"
_MODE_OF_MEDIA = 0o750
_MOST_OF_DATA = 0o640
"""Permissions of a database, whatever a backup by another umask says."""


def verify(source: Path, *, passphrase: str, near: Path | None = None) -> Manifest:
    """Check a backup throughout: that it was made with the passphrase, every check sum, both databases, the secrets.

    `near`: the folder to unpack it in meanwhile, the backup's own if left out. Raises ConfigError, StoreError.
    """
    with _unpacked(source, near or source.parent, passphrase) as (manifest, _):
        return manifest


def restore(
    source: Path, place: Place, *, passphrase: str, with_secrets: bool = True, replace: bool = False
) -> Manifest:
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
            DataFolder.open(place.data) as data,
            _unpacked(source, data.path, passphrase, with_secrets=with_secrets) as (manifest, unpacked),
        ):
            used = [name for name in manifest.schemas if (place.data / name).exists()]
            if (used or place.site_file.exists()) and not replace:
                there = place.data / used[0] if used else place.site_file
                raise ConfigError(f"{there} is there already; --replace keeps what is there under another name")
            footage = _footage(unpacked, data)
            for name in manifest.schemas:
                note = f"{name}.ids"
                if (place.data / note).exists():
                    shutil.copyfile(place.data / note, unpacked / "data" / note)
                prepare_restored(unpacked / "data" / name)
            _put_site(unpacked / "site", manifest.site_file, place.site_file)
            _put_footage(footage, unpacked, place.data)
            _put_data(unpacked / "data", place.data)
    except OSError as error:
        raise StoreError(f"the backup cannot be restored: {error.strerror or error}") from error
    return manifest


@contextmanager
def _unpacked(
    source: Path, near: Path, passphrase: str, *, with_secrets: bool = True
) -> Iterator[tuple[Manifest, Path]]:
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
    folder = site_file.parent
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(unpacked.rglob("*")):
        if not path.is_file():
            continue
        inside, found = path.relative_to(unpacked), path.stat()
        target = site_file if str(inside) == named else folder / inside
        if not target.parent.exists():
            target.parent.mkdir(parents=True, mode=0o750 if found.st_mode & 0o070 else 0o700)
            _own(target.parent, found)
        if target.exists() and target.read_bytes() != path.read_bytes():
            target.rename(_free_name(target))
        _put(path, target, owner=found)


def _put_data(unpacked: Path, data: Path) -> None:
    """Copy the databases and what belongs to them into the data folder; those that are there are kept aside."""
    for path in sorted(unpacked.iterdir()):
        target = data / path.name
        if path.suffix == ".db":
            aside = _free_name(target)
            for suffix in _SIDE_FILES:
                if (before := data / f"{path.name}{suffix}").exists():
                    before.rename(aside.with_name(aside.name + suffix))
        elif target.exists() and path.suffix not in _BESIDE_DATABASE:
            target.rename(_free_name(target))
        _put(path, target, owner=data.stat(), most=_MOST_OF_DATA)


def _footage(unpacked: Path, data: DataFolder) -> list[Path]:
    """Return the files and folders of footage and evidence. Raises ConfigError if they cannot be put back."""
    found = sorted((unpacked / MEDIA).rglob("*"))
    if found and data.media_condition is not MediaCondition.READY:
        raise ConfigError(f"footage cannot be put into {data.media}; mount its disk there first")
    for path in found:
        if not is_plain(data.path, str(path.relative_to(unpacked))):
            raise ConfigError(f"footage cannot be put into {data.media}, where a link leads elsewhere; remove the link")
    return found


def _put_footage(footage: list[Path], unpacked: Path, data: Path) -> None:
    """Copy footage and evidence into the media folder, where none of that name is."""
    owner = data.stat()
    for path in footage:
        target = data / path.relative_to(unpacked)
        if path.is_dir():
            target.mkdir(mode=_MODE_OF_MEDIA, exist_ok=True)
            _own(target, owner)
        elif not target.exists():
            _put(path, target, owner=owner, most=_MOST_OF_DATA)
            path.unlink()  # large footage is not there twice


def _put(path: Path, target: Path, *, owner: os.stat_result, most: int = 0o777) -> None:
    """Copy a file durably, with its permissions but no more than `most`.

    The folder may belong to the gateway's user: what another program puts in the draft's place is not followed.
    """
    draft = target.with_name(f".{target.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as written, path.open("rb") as unpacked:
        shutil.copyfileobj(unpacked, written)
        written.flush()
        os.fchmod(descriptor, path.stat().st_mode & most)
        if os.geteuid() == 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        os.fsync(descriptor)
    draft.replace(target)
    sync_folder(target.parent)


def _give(path: Path, owner: str, group: str) -> None:
    """Let a file belong to this user and group, where this machine has them and this user may do that."""
    if os.geteuid() == 0:
        for names in ({"user": owner}, {"group": group}):
            with contextlib.suppress(LookupError):
                shutil.chown(path, **names)


def _own(path: Path, owner: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def _free_name(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}.{_ASIDE}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.{_ASIDE}-{number}")
