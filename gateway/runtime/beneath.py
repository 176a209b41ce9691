"""Files beneath a folder in which another user may write: no link leads out of it.

Each part of a name is opened by the descriptor of the folder before it, without following (openat(2), O_NOFOLLOW), so
that nothing can be exchanged between a look and its use. Root works there with the rights of the folder's owner.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO without a writer keeps nobody waiting


class NoPlainFile(OSError):
    """A link, a file with several names, a device or the like, or a file behind a link."""


class Beneath:
    """A folder. Names are relative to it, and never leave it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading. Raises NoPlainFile, FileNotFoundError, OSError."""
        with self._parent(name) as (parent, last):
            descriptor = os.open(last, _FILE, dir_fd=parent)
        if not _is_plain(os.fstat(descriptor)):
            os.close(descriptor)
            raise NoPlainFile(f"{self.path / name} is no file with one name")
        return os.fdopen(descriptor, "rb")

    def files(self, inside: str = "", *, skipped: frozenset[str] = frozenset()) -> Iterator[tuple[str, bool]]:
        """Yield each name in a folder inside, "" for all, that is no folder itself, and whether it is a plain file.

        What another user removes meanwhile is left out. `skipped`: names of folders that are not looked into.
        """
        pending = [f"{inside}/" if inside else ""]
        while pending:
            inside = pending.pop()
            for last, found in self._entries(inside):
                name = f"{inside}{last}"
                if name in skipped:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    pending.append(f"{name}/")
                else:
                    yield name, _is_plain(found)

    def put(self, name: str, content: IO[bytes], *, mode: int, owner: tuple[int, int] | None) -> None:
        """Write a file durably in place of what has its name. `owner`: its user and group, None for this process's."""
        with self._parent(name, make=True, owner=owner, mode=mode) as (parent, last):
            draft = f".{last}.new"
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(draft, flags, 0o600, dir_fd=parent)
            with os.fdopen(descriptor, "wb") as written:
                shutil.copyfileobj(content, written)
                written.flush()
                os.fchmod(descriptor, mode)
                if owner is not None:
                    os.fchown(descriptor, *owner)
                os.fsync(descriptor)
            os.rename(draft, last, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)

    def set_aside(self, name: str, suffix: str) -> None:
        """Rename what has this name, with `suffix` and the first number that is free."""
        with self._parent(name) as (parent, last):
            number = 1
            while _is_there(parent, f"{last}.{suffix}-{number}"):
                number += 1
            os.rename(last, f"{last}.{suffix}-{number}", src_dir_fd=parent, dst_dir_fd=parent)

    def is_there(self, name: str) -> bool:
        """Return whether anything has this name, a link too."""
        try:
            with self._parent(name) as (parent, last):
                return _is_there(parent, last)
        except FileNotFoundError:
            return False

    def _entries(self, inside: str) -> list[tuple[str, os.stat_result]]:
        found: list[tuple[str, os.stat_result]] = []
        with suppress(FileNotFoundError, NoPlainFile), self._parent(f"{inside}x") as (parent, _):
            for name in sorted(os.listdir(parent)):  # noqa: PTH208  # by its descriptor, which a path has not
                with suppress(FileNotFoundError):
                    found.append((name, os.stat(name, dir_fd=parent, follow_symlinks=False)))
        return found

    @contextmanager
    def _parent(
        self, name: str, *, make: bool = False, owner: tuple[int, int] | None = None, mode: int = 0o600
    ) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the folder that a name is in, and the last part of the name."""
        *folders, last = PurePosixPath(name).parts
        if ".." in folders or last == ".." or name.startswith("/"):
            raise NoPlainFile(f"{name} leads out of {self.path}")
        held = os.open(self.path, _FOLDER & ~os.O_NOFOLLOW)  # how to come here is for whoever runs the machine to say
        try:
            for folder in folders:
                if make:
                    _make_folder(held, folder, owner=owner, mode=0o750 if mode & 0o070 else 0o700)
                try:
                    inner = os.open(folder, _FOLDER, dir_fd=held)
                except NotADirectoryError as error:
                    raise NoPlainFile(f"{self.path / name} lies behind a link") from error
                os.close(held)
                held = inner
            yield held, last
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
                raise NoPlainFile(f"{self.path / name} is no file") from error
            error.filename = error.filename and str(self.path / name)
            raise
        finally:
            os.close(held)


def _make_folder(parent: int, name: str, *, owner: tuple[int, int] | None, mode: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
        if owner is not None:
            os.chown(name, *owner, dir_fd=parent, follow_symlinks=False)


def _is_plain(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _is_there(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def acting_as_owner(folder: Path) -> Iterator[None]:
    """Act as the owner of a folder if run as root. A folder that is not there yet is nobody's.

    The owner cannot use files of root, and what the owner put in a file's place gives root's rights to nobody: a link
    leads no further than the owner could go. The rights are those of the whole process.
    """
    owner = folder.stat() if folder.exists() else None
    if os.geteuid() != 0 or owner is None or owner.st_uid == 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
