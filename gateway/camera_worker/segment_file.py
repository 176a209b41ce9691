"""A segment's file, which becomes durable as a whole or not at all: its name ends in `.part` until it is complete.

Order: create exclusively, write, fsync the file, rename, fsync the folders. If a step fails, the file is given up. A
failed fsync is never repeated, because the kernel may have dropped the pages that it could not write.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from gateway.runtime.durable_files import sync_folder

PART_SUFFIX = ".part"
_MOST_AT_ONCE = 512
"""The kernel takes up to 1,024 pieces in one call (IOV_MAX)."""


class DiskFailed(OSError):
    """The media folder cannot be written to (full, read-only, too large, broken)."""


class SegmentFile:
    """The file of a segment that is being written. Belongs to one thread."""

    def __init__(self, *, part: Path, marker: Path | None = None) -> None:
        """Prepare the file. `marker` must exist, otherwise a wrong disk is mounted; None for no check."""
        self._part = part
        self._marker = marker
        self._descriptor = -1
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """SHA-256 of everything written, in hexadecimal digits."""
        return self._digest.hexdigest()

    def create(self) -> None:
        """Create the file and its folder. After a failure it may be called again.

        Raises:
            DiskFailed: it cannot be created, exists already, or the marker is missing.
        """
        try:
            self._look_for_marker()
            self._digest, self.size = hashlib.sha256(), 0
            _make_folder(self._part.parent)
            self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise DiskFailed(error.errno, error.strerror) from error

    def write(self, pieces: Sequence[bytes | bytearray]) -> None:
        """Append these pieces, without making one of them: that would take memory from the system and give it back.

        Raises:
            DiskFailed: not all could be written; the file is given up.
        """
        try:
            for at in range(0, len(pieces), _MOST_AT_ONCE):
                self._write(pieces[at : at + _MOST_AT_ONCE])
        except OSError as error:
            self.abandon()
            raise DiskFailed(error.errno, error.strerror) from error
        for piece in pieces:
            self._digest.update(piece)
            self.size += len(piece)

    def _write(self, pieces: Sequence[bytes | bytearray]) -> None:
        written = os.writev(self._descriptor, pieces)
        if written < sum(map(len, pieces)):
            rest = memoryview(b"".join(pieces))[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def finish(self, final: Path) -> None:
        """Make the file durable under its final name.

        Raises:
            DiskFailed: it may not be on the disk; the file is given up.
        """
        try:
            os.fsync(self._descriptor)
            self._look_for_marker()
            _make_folder(final.parent)
            self._part.rename(final)
            for folder in {final.parent, self._part.parent}:
                sync_folder(folder)
        except OSError as error:
            with contextlib.suppress(OSError):  # a disk that is read-only or gone has no such file either
                final.unlink(missing_ok=True)
            self.abandon()
            raise DiskFailed(error.errno, error.strerror) from error
        os.close(self._descriptor)
        self._descriptor = -1

    def _look_for_marker(self) -> None:
        if self._marker is not None and not self._marker.exists():
            raise OSError(errno.ENODEV, "its marker is missing; is its disk mounted?")

    def abandon(self) -> None:
        """Close the file and remove it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(OSError):  # a file that stays is salvaged or removed at the next start
            self._part.unlink(missing_ok=True)


def _make_folder(hour: Path) -> None:
    """Create `<camera>/<hour>` durably. The media folder itself is not created: if missing, its disk is not mounted."""
    for folder in (hour.parent, hour):
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
