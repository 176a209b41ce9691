"""Classify errors of SQLite and of the disk: the caller's mistake, a disk that refuses, or a damaged file."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from enum import StrEnum
from pathlib import Path

from gateway.domain.errors import StoreError

_PRIMARY = 0xFF
_OWN = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_AUTH,
    }
)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNREADABLE = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
_NO_ROOM_BYTES = 128 * 1024  # with less than this free, SQLite's plain "disk I/O error" means a full disk


class _Cause(StrEnum):
    """A cause to which callers react, in words."""

    FULL = "the disk is full"
    READ_ONLY = "the data folder is read-only"


def _code(error: Exception) -> int:
    """Return SQLite's extended result code; 0 for errors that Python's module raised by itself."""
    return int(getattr(error, "sqlite_errorcode", 0))


def is_own(error: sqlite3.Error) -> bool:
    """Return whether the statement itself is at fault, so that undoing its job alone lets the others go on."""
    return _code(error) & _PRIMARY in _OWN or _code(error) == 0


def is_damage(error: Exception) -> bool:
    """Return whether the file's content is damaged or unreadable; a full disk or a locked file is no damage."""
    return _code(error) & _PRIMARY in _DAMAGE or _code(error) in _UNREADABLE


class DiskTakesNothing(StoreError):
    """The disk is full or read-only; existing data can still be read."""

    def __init__(self, fault: str, then: str = "") -> None:
        super().__init__(f"{fault}; {then}" if then else fault)
        self.fault = fault


class DiskFull(DiskTakesNothing):
    """The disk is full."""


def refused(path: Path, error: Exception, then: str) -> StoreError:
    """Return a StoreError that names the file, the fault in plain words and its consequence `then`.

    It is a DiskFull if the disk is full, a DiskTakesNothing if it is read-only.
    """
    cause = _cause(path, error)
    fault = f"{path.name}: {cause}"
    if cause is _Cause.FULL:
        return DiskFull(fault, then)
    return DiskTakesNothing(fault, then) if cause is _Cause.READ_ONLY else StoreError(f"{fault}; {then}")


def fault_of(path: Path, error: Exception) -> str:
    """Name the file, and the fault in plain words."""
    return f"{path.name}: {_cause(path, error)}"


def _cause(path: Path, error: Exception) -> str:
    code = _code(error) & _PRIMARY
    number = error.errno if isinstance(error, OSError) else 0
    unsaid = code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    sayings = (
        (code == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _Cause.FULL),
        (code == sqlite3.SQLITE_READONLY or number == errno.EROFS, _Cause.READ_ONLY),
        (number in (errno.EACCES, errno.EPERM), "the data folder may not be written to by this user"),
        (number in (errno.ENOENT, errno.ENOTDIR), "the data folder does not exist"),
        (code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "another program holds the file"),
        (is_damage(error), f"the file is damaged ({error})"),
        (unsaid and _is_read_only(path.parent), _Cause.READ_ONLY),
        (unsaid and _free_bytes(path) < _NO_ROOM_BYTES, _Cause.FULL),
    )
    plain = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return next((words for holds, words in sayings if holds), plain)


def _is_read_only(folder: Path) -> bool:
    return folder.is_dir() and not os.access(folder, os.W_OK)


def _free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return _NO_ROOM_BYTES
