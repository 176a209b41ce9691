"""Making of a backup, while the gateway runs or not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from gateway.backup.archive import BackupManifest, Opener, member_of, pack, seal
from gateway.backup.faults import folder_fault
from gateway.domain.errors import ConfigError, StoreError
from gateway.runtime.beneath import Beneath, NoPlainFile
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.copies import copy_databases
from gateway.store.footage.event_footage import held_files

SEALED = "sealed"
"""The member that holds the secrets."""
MEDIA = "media"
"""The folder of footage and evidence, in a backup as in the data folder."""
_EVIDENCE = "evidence"
SECRET_FOLDERS = ("secrets", "tls")
"""Beside the site file."""
_SECRET_FILES = ("second-factor.key",)
_PLAIN_FILES = ("access.log",)
_LARGEST_FILE = 1024 * 1024
"""Of what lies beside the site file."""


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Places of a gateway's files."""

    site_file: Path
    data: Path


def make_backup(
    place: FilePlaces,
    target: Path,
    *,
    passphrase: str,
    site: str,
    version: str,
    made_at: str,
    with_secrets: bool = True,
    with_footage: bool = False,
    left_out: Callable[[str], None] = lambda _: None,
) -> BackupManifest:
    """Write a backup of the gateway at `place` to the file `target`, which must not be there yet.

    Blocks on the disk. `passphrase` authenticates the whole backup and seals the secrets, which `with_secrets` adds.
    `with_footage` adds the footage that camera events hold, and their evidence. `left_out` gets the names of links and
    of files with several names, which are not followed: their owner must not lead root elsewhere.

    Raises:
        ConfigError: there is no gateway at `place`; FolderRefuses if `target` cannot be written.
        StoreError: a database is damaged, or footage cannot be read; DiskFull if there is no room.
    """
    data, draft = Beneath(place.data), target.with_name(f".{target.name}.new")
    media = place.data / MEDIA
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
            staged = Path(folder)
            schemas = copy_databases(place.data, staged)
            files = {f"data/{name}": _opener(staged / name) for name in schemas}
            sources, secrets = _of_data(data, _PLAIN_FILES), _of_data(data, _SECRET_FILES)
            _beside(place, sources, secrets, left_out)
            found: dict[str, os.stat_result] = {}
            files |= _held_still(sources, staged, found, left_out)
            if with_secrets:
                held = _held_still(secrets, staged, found, left_out)
                (staged / SEALED).write_bytes(seal(held, found, passphrase))
                files[SEALED] = _opener(staged / SEALED)
            if with_footage:
                names = (*held_files(staged / "site.db"), *_evidence(data))
                files |= {
                    f"{MEDIA}/{name}": partial(data.open, f"{MEDIA}/{name}")
                    for name in names
                    if _is_plain(data, f"{MEDIA}/{name}", left_out)
                }
            manifest = BackupManifest(
                version=version,
                site=site,
                made_at=made_at,
                site_file=place.site_file.name,
                schemas=schemas,
                has_secrets=with_secrets,
                members={name: member_of(opened, found.get(name)) for name, opened in files.items()},
            )
            draft.unlink(missing_ok=True)
            pack(draft, manifest, files, passphrase=passphrase)
        if target.exists():
            raise ConfigError(f"{target} is there already; name another file")
        draft.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        if error.filename is not None and Path(error.filename).is_relative_to(media):
            raise StoreError(
                f"footage cannot be read ({error.strerror}); it may have been deleted meanwhile, so try again"
            ) from error
        raise folder_fault(target.parent, error) from error
    finally:
        with suppress(OSError):  # its own fault is told already
            draft.unlink(missing_ok=True)
    return manifest


def _of_data(data: Beneath, names: Iterable[str]) -> dict[str, Opener]:
    return {f"data/{name}": partial(data.open, name) for name in names if data.is_there(name)}


def _opener(path: Path) -> Opener:
    return lambda: path.open("rb")


def _held_still(
    sources: Mapping[str, Opener], staged: Path, found: dict[str, os.stat_result], left_out: Callable[[str], None]
) -> dict[str, Opener]:
    """Copy files that a running gateway may change meanwhile, and note in `found` whose they are.

    A link is told and left out.
    """
    copies: dict[str, Opener] = {}
    for name, opened in sources.items():
        try:
            source = opened()
        except FileNotFoundError:
            continue
        except NoPlainFile:
            left_out(name)
            continue
        copy = staged / "still" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with source, copy.open("wb") as written:
            shutil.copyfileobj(source, written)
            found[name] = os.fstat(source.fileno())
        copies[name] = _opener(copy)
    return copies


def _is_plain(data: Beneath, name: str, left_out: Callable[[str], None]) -> bool:
    """Return whether this is a file without a link on its way; tell one that is not."""
    try:
        data.open(name).close()
    except NoPlainFile:
        left_out(name)
        return False
    return True


def _evidence(data: Beneath) -> Iterator[str]:
    """Yield the files of evidence that have arrived whole, relative to the media folder."""
    for name, _ in data.files(f"{MEDIA}/{_EVIDENCE}"):
        inside = name.removeprefix(f"{MEDIA}/")
        if "." not in inside and inside.count("/") == 1:
            yield inside


def _beside(
    place: FilePlaces, settings: dict[str, Opener], secrets: dict[str, Opener], left_out: Callable[[str], None]
) -> None:
    """Add the site file and what lies beside it: settings in the clear, and secrets, which is all that is no setting.

    The folder may belong to the gateway's user: no link leads root's reading elsewhere. Raises ConfigError.
    """
    folder = Beneath(place.site_file.parent)
    _expect_site_file(place, folder)
    skipped = frozenset({os.path.relpath(place.data.absolute(), folder.path.absolute())})
    for name, plain in folder.files(skipped=skipped):
        parts = PurePosixPath(name).parts
        is_secret = parts[0] in SECRET_FOLDERS
        if not is_secret and any(part.startswith(".") for part in parts):
            continue
        if not plain:
            left_out(f"site/{name}")
            continue
        is_setting = not is_secret and (name == place.site_file.name or name.endswith(".toml"))
        if is_secret or _size(folder, name) <= _LARGEST_FILE:
            (settings if is_setting else secrets)[f"site/{name}"] = partial(folder.open, name)


def _expect_site_file(place: FilePlaces, folder: Beneath) -> None:
    try:
        folder.open(place.site_file.name).close()
    except FileNotFoundError as error:
        raise ConfigError(f"there is no site file {place.site_file}; name it with --site") from error
    except NoPlainFile as error:
        raise ConfigError(
            f"{place.site_file} is a link, or a file with several names, which a backup does not follow: put the file"
            " itself there"
        ) from error


def _size(folder: Beneath, name: str) -> int:
    try:
        with folder.open(name) as file:
            return os.fstat(file.fileno()).st_size
    except (FileNotFoundError, NoPlainFile):
        return 0  # copying it tells
