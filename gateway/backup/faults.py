"""Faults of backups, one class per reaction, and the kind of problem that each is told as."""

from __future__ import annotations

import errno
from pathlib import Path

from gateway.domain.errors import ConfigError, GatewayError, StoreError
from gateway.domain.problems import ProblemKind
from gateway.store.engine.faults import DiskFull

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class FolderRefuses(ConfigError):
    """The folder of backups is missing, or may not be written to. A person must mount it or give the right."""


class PlaceRefuses(ConfigError):
    """A far place of backups does not let the gateway in, or proves to be another. A person must correct a setting."""


class PlaceFailed(GatewayError):
    """A far place of backups failed. The next backup is tried there again."""


class PlaceUnreachable(PlaceFailed):
    """A far place of backups cannot be reached, or its line breaks."""


_KINDS = (
    (FolderRefuses, ProblemKind.BACKUP_FOLDER_REFUSES),
    (DiskFull, ProblemKind.BACKUP_NO_ROOM),
    (PlaceRefuses, ProblemKind.BACKUP_REFUSED),
    (PlaceUnreachable, ProblemKind.BACKUP_UNREACHABLE),
)


def kind_of(error: Exception) -> ProblemKind:
    """Return the kind of problem that a failed backup is told as."""
    return next((kind for fault, kind in _KINDS if isinstance(error, fault)), ProblemKind.BACKUP_FAILED)


def folder_fault(folder: Path, error: OSError) -> GatewayError:
    """Return the fault of the folder of backups for an error of the system."""
    if error.errno in _FULL:
        return DiskFull(f"there is no room for the backup in {folder}")
    if error.errno == errno.EROFS:
        return FolderRefuses(f"{folder} is read-only: its disk is, or the unit of backups may not write there")
    if error.errno in (errno.EACCES, errno.EPERM):
        return FolderRefuses(f"{folder} may not be written to by this user")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if folder.is_dir():  # as below /proc
            return FolderRefuses(f"{folder} takes no files")
        return FolderRefuses(f"there is no folder {folder}")
    return StoreError(f"the backup cannot be written to {folder}: {error.strerror or 'its disk failed'}")


def fault_here(error: OSError) -> StoreError:
    """Return the fault of this machine's own disk that broke a transfer off."""
    if error.errno in _FULL:
        return DiskFull("this machine has no room for the backup: free some space on its disk")
    why = error.strerror or "its disk failed"
    return StoreError(f"this machine cannot read or write the backup: {why}: check its disk and free some space")
