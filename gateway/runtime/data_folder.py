"""The data folder: the files of one gateway on one machine, locked while the gateway runs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import uuid
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from gateway.domain.errors import ConfigError, StoreError
from gateway.runtime.beneath import acting_as_owner
from gateway.runtime.durable_files import sync_folder

_MODE = 0o750
_PROBE_BYTES = 64 * 1024
MEDIA_MARKER = ".edge-gateway-media"
"""A file on the disk of the media folder, which is missing while that disk is not mounted."""
MADE_OF_FOOTAGE = ("clips", "thumbs", "stills")
"""Folders in the media folder for files that are made from footage on request."""

_RECORD = "media.uuid"
_TAKES_NOTHING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class MediaCondition(StrEnum):
    """The state of the marker in the media folder. Footage may be written only while it is `READY`."""

    READY = "ready"
    MARKER_MISSING = "marker_missing"
    """There is no marker, though there was one: the media disk is not mounted, or was emptied or replaced."""
    OTHER_DISK = "other_disk"
    """The marker is another gateway's, or an older one of this gateway."""
    READ_ONLY = "read_only"
    NOT_WRITABLE = "not_writable"


class DataFolder:
    """The folder of all durable files of this gateway. `open` takes its lock, which is held until `close`.

    A media folder that is not ready does not keep a gateway from starting, because lanes work without footage.
    """

    def __init__(self, *, path: Path, lock: int, media_condition: MediaCondition, takes_nothing: str = "") -> None:
        """Keep the folder's state. `takes_nothing`: why nothing can be written to it now, "" if it can."""
        self.path = path
        self.takes_nothing = takes_nothing
        self.media_condition = media_condition
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Make the folder if it is missing, take its lock, and try to write to it. Blocks on the disk.

        A folder with a database is opened even if its disk is full or read-only, because gates can be opened by the
        existing data; `takes_nothing` then has the reason.

        Raises:
            ConfigError: another gateway uses the folder, or it is not a usable folder.
            StoreError: the disk refuses, and the folder has no database yet.
        """
        path = path.absolute()
        try:
            path.mkdir(mode=_MODE, parents=True, exist_ok=True)
            lock = _open_lock(path / "lock")
        except OSError as error:
            raise _refusal_at_start(path, error) from error
        try:
            _take(lock, path)
            takes_nothing = ""
            try:
                (path / "run").mkdir(mode=_MODE, exist_ok=True)
                _try_writing(path)
            except OSError as error:
                if error.errno not in _TAKES_NOTHING or not (path / "site.db").exists():
                    raise
                takes_nothing = str(_refusal(path, error))
            return cls(path=path, lock=lock, media_condition=media_condition(path), takes_nothing=takes_nothing)
        except OSError as error:
            os.close(lock)
            raise _refusal_at_start(path, error) from error
        except BaseException:  # another gateway has the folder, or an interrupt: nobody else would release the lock
            os.close(lock)
            raise

    def close(self) -> None:
        """Release the lock. May be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def media(self) -> Path:
        """The folder of footage, which may be a mount point."""
        return self.path / "media"

    @property
    def run(self) -> Path:
        """The folder of the running gateway's sockets, which may be deleted when it does not run."""
        return self.path / "run"


def takes_data(folder: Path) -> bool:
    """Return whether this folder can be written to now. Blocks on the disk."""
    try:
        _try_writing(folder)
    except OSError:
        return False
    return True


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    except OSError as error:
        if error.errno != errno.EROFS or not path.exists():
            raise
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise ConfigError(f"data folder {path} is in use by another edge-gateway, {who}") from error
    with contextlib.suppress(OSError):  # the lock is valid even if the process id cannot be written
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _try_writing(folder: Path) -> None:
    """Write 64 KB durably to a file in the folder, and remove it again. Raises OSError."""
    probe = folder / ".probe"
    _remove(probe)  # a link, or what a crash left
    try:
        with probe.open("xb") as file:
            file.write(b"\0" * _PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    finally:
        _remove(probe)


def _remove(probe: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only disk refuses even to remove a missing file
        probe.unlink(missing_ok=True)


def _refusal(path: Path, error: OSError) -> ConfigError | StoreError:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StoreError(f"data folder {path} is full; free some space on its disk")
        case errno.EROFS:
            return StoreError(f"data folder {path} is on a read-only disk")
        case errno.EACCES | errno.EPERM:
            return ConfigError(f"data folder {path} may not be written by user {os.geteuid()}")
        case errno.EEXIST | errno.ENOTDIR:
            return ConfigError(f"data folder {path} is not a folder")
        case _:
            return StoreError(f"data folder {path} cannot be used: {error.strerror or error}")


def _refusal_at_start(path: Path, error: OSError) -> ConfigError | StoreError:
    """Return the error for a folder that cannot be opened; without a database it adds that no gate is driven."""
    refusal = _refusal(path, error)
    if error.errno not in _TAKES_NOTHING or (path / "site.db").exists():
        return refusal
    return StoreError(f"{refusal}; it is new, so no gate is driven until it takes data")


def media_condition(path: Path) -> MediaCondition:
    """Return whether footage may be written to the media folder of data folder `path` now. Blocks on the disk.

    The media folder's marker is compared with the one that this data folder knows; both are made at the first start. A
    full disk counts as ready, because retention makes room on it.
    """
    try:
        (path / "media").mkdir(mode=_MODE, exist_ok=True)
        marker = _read_id(path / "media" / MEDIA_MARKER)
        known = _read_id(path / _RECORD)
        if known is None:  # the first start, or a lost data folder whose footage is still there
            _mark(path, marker or str(uuid.uuid4()))
        elif marker is None:
            return MediaCondition.MARKER_MISSING
        elif marker != known:
            return MediaCondition.OTHER_DISK
        _try_making(path / "media")
    except OSError as error:  # recording stays off with a reason; the gateway must start without this disk
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                return MediaCondition.READY
            case errno.EROFS:
                return MediaCondition.READ_ONLY
            case _:
                return MediaCondition.NOT_WRITABLE
    return MediaCondition.READY


def adopt_media(path: Path, *, same_disk: bool = False) -> bool:
    """Accept the present media folder of data folder `path`, whatever disk it is on. Blocks on the disk.

    This is for a technician who has installed another disk; a running gateway notices it. Return whether anything had
    to be done. Run as root, it gives the media folder and the marker to the owner of the data folder.

    Raises:
        ConfigError: `path` is not the data folder of a gateway; or the media folder is on the same disk as the data
            folder, as it is while its own disk is not mounted, and `same_disk` does not allow that.
        StoreError: the marker cannot be written.
    """
    media = path / "media"
    try:
        if _read_id(path / _RECORD) is None and not (path / "site.db").exists():
            raise ConfigError(f"{path} is not the data folder of a gateway that has run")
        owner = path.stat()
        with acting_as_owner(path):
            if media_condition(path) is MediaCondition.READY:
                return False
        if not same_disk and media.stat().st_dev == owner.st_dev:
            raise ConfigError(
                f"{media} is on the disk of {path} itself: mount the new disk there first,"
                " or add --same-disk when footage is to be kept there"
            )
        if os.geteuid() == 0:  # the top folder of a new disk belongs to root, and the gateway is not root
            os.chown(media, owner.st_uid, owner.st_gid, follow_symlinks=False)
        with acting_as_owner(path):
            _forget_made(media)
            _mark(path, _read_id(media / MEDIA_MARKER) or str(uuid.uuid4()))
    except OSError as error:
        raise _refusal(media, error) from error
    return True


def _try_making(folder: Path) -> None:
    """Make an empty file and remove it again, without a sync. Raises OSError."""
    probe = folder / ".probe"
    _remove(probe)
    try:
        probe.touch(exist_ok=False)
    finally:
        _remove(probe)


def _forget_made(media: Path) -> None:
    """Delete cached clips and pictures: they are named by event ids, and another gateway's ids mean other events."""
    for name in MADE_OF_FOOTAGE:
        for file in (media / name).glob("*"):
            file.unlink(missing_ok=True)


def _mark(path: Path, media_id: str) -> None:
    """Write the marker, then the record of it. After a crash in between, the next start takes the marker over.

    The media folder's own name must be durable before the record: a record alone tells of a disk that is gone.
    """
    _write_durably(path / "media" / MEDIA_MARKER, media_id)
    sync_folder(path)
    _write_durably(path / _RECORD, media_id)


def _read_id(path: Path) -> str | None:
    try:
        text = path.read_bytes()[:64].decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    return text or None


def _write_durably(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:
        file.write(f"{text}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def media_fault(data: Path) -> str:
    """Return why footage must not be written now, "" if it may. Blocks on the disk."""
    adopt = f"edge-gateway media adopt {data}"
    sentences = {
        MediaCondition.READY: "",
        MediaCondition.MARKER_MISSING: (
            f"the media folder has lost its marker: is its disk mounted? For a new disk: {adopt}"
        ),
        MediaCondition.OTHER_DISK: f"the media folder is on another disk than before; if it is to be used: {adopt}",
        MediaCondition.READ_ONLY: "the media folder's disk is read-only",
        MediaCondition.NOT_WRITABLE: "the media folder cannot be written",
    }
    return sentences[media_condition(data)]
