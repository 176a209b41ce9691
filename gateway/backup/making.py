"""Making of a backup, while the gateway runs or not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.backup.archive import Manifest, member_of, pack, seal
from gateway.backup.faults import folder_fault
from gateway.domain.errors import ConfigError, StoreError
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
class Place:
    """Places of a gateway's files."""

    site_file: Path
    data: Path


def make_backup(
    place: Place,
    target: Path,
    *,
    passphrase: str,
    site: str,
    version: str,
    made_at: str,
    with_secrets: bool = True,
    with_footage: bool = False,
) -> Manifest:
    """Write a backup of the gateway at `place` to the file `target`, which must not be there yet.

    Blocks on the disk. `passphrase` authenticates the whole backup and seals the secrets, which `with_secrets` adds.
    `with_footage` adds the footage that camera events hold, and their evidence.

    Raises:
        ConfigError: there is no gateway at `place`; FolderRefuses if `target` cannot be written.
        StoreError: a database is damaged, or footage cannot be read; DiskFull if there is no room.
    """
    media = place.data / MEDIA
    draft = target.with_name(f".{target.name}.new")
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
            staged = Path(folder)
            schemas = copy_databases(place.data, staged)
            files = {f"data/{name}": staged / name for name in schemas}
            files |= {f"data/{name}": place.data / name for name in _PLAIN_FILES if (place.data / name).is_file()}
            files |= {f"site/{path.relative_to(place.site_file.parent)}": path for path in _settings(place)}
            if with_secrets:
                files[SEALED] = staged / SEALED
                files[SEALED].write_bytes(seal(dict(_secrets(place)), passphrase))
            files = {name: _held_still(path, staged, name) for name, path in files.items()}
            if with_footage:
                held = (*held_files(staged / "site.db"), *_evidence(media))
                files |= {f"{MEDIA}/{name}": media / name for name in held if is_plain(place.data, f"{MEDIA}/{name}")}
            manifest = Manifest(
                version=version,
                site=site,
                made_at=made_at,
                site_file=place.site_file.name,
                schemas=schemas,
                has_secrets=with_secrets,
                members={name: member_of(path) for name, path in files.items()},
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


def _held_still(path: Path, staged: Path, name: str) -> Path:
    """Return a copy of a file that a running gateway may change meanwhile."""
    if path.is_relative_to(staged):
        return path
    copy = staged / "still" / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(path.read_bytes())
    copy.chmod(path.stat().st_mode & 0o777)
    return copy


def is_plain(folder: Path, name: str) -> bool:
    """Return whether no part of `name` in the folder is a link: its owner must not lead root elsewhere."""
    return (folder / name).resolve() == folder.resolve() / name


def _evidence(media: Path) -> Iterator[str]:
    """Yield the files of evidence that have arrived whole, relative to the media folder."""
    yield from (f"{_EVIDENCE}/{path.name}" for path in sorted((media / _EVIDENCE).glob("*")) if not path.suffix)


def _settings(place: Place) -> Iterator[Path]:
    """Yield the site file and the profiles beside it."""
    if not place.site_file.is_file():
        raise ConfigError(f"there is no site file {place.site_file}; name it with --site")
    yield from (path for path in _beside(place) if _is_setting(path, place))


def _secrets(place: Place) -> Iterator[tuple[str, Path]]:
    """Yield the names and files of secrets: all beside the site file that is no setting, and the data folder's."""
    folder = place.site_file.parent
    for name in SECRET_FOLDERS:
        for path in sorted((folder / name).rglob("*")):
            if path.is_file():
                yield f"site/{path.relative_to(folder)}", path
    for path in _beside(place):
        if not _is_setting(path, place):
            yield f"site/{path.relative_to(folder)}", path
    for name in _SECRET_FILES:
        if (path := place.data / name).is_file():
            yield f"data/{name}", path


def _is_setting(path: Path, place: Place) -> bool:
    """Return whether a file may stand in the clear. Others may be the passphrase itself, or a private key."""
    return path == place.site_file or path.suffix == ".toml"


def _beside(place: Place) -> Iterator[Path]:
    """Yield the files beside the site file, without the folders of secrets and the data folder.

    The folder may belong to the gateway's user: no link leads root's reading elsewhere.
    """
    folder, data = place.site_file.parent, place.data.absolute()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in inside)
        if inside[0] in SECRET_FOLDERS or hidden or path.absolute().is_relative_to(data):
            continue
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST_FILE:
            yield path
