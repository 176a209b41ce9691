"""A file that becomes durable or does not exist: `.part` until it is complete, then its final name.

Order: create exclusively, write, fsync the file, rename, fsync the directories. A failure of any step gives the file
up; a failed fsync is never tried again, because the kernel may have dropped the pages it could not write.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from pathlib import Path

from gateway.runtime.durable_files import sync_folder

PART_SUFFIX = ".part"


class DiskFailed(OSError):
    """The media folder cannot be written to (full, read-only, too large, broken)."""


class SegmentFile:
    """A segment being written. Belongs to one thread."""

    def __init__(self, *, part: Path, marker: Path | None = None) -> None:
        """`marker` is a file that must be there before anything is written: without it another disk is."""
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
        """Make the file and its folder, afresh after a failure.

        Raises:
            DiskFailed: it cannot be made, or exists already.
        """
        try:
            self._look_for_marker()
            self._digest, self.size = hashlib.sha256(), 0
            _make_folder(self._part.parent)
            self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise DiskFailed(error.errno, error.strerror) from error

    def write(self, data: bytes) -> None:
        """Append all of `data`.

        Raises:
            DiskFailed: it did not fit; the file is given up.
        """
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self.abandon()
            raise DiskFailed(error.errno, error.strerror) from error
        self._digest.update(data)
        self.size += len(data)

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
            with contextlib.suppress(OSError):  # read-only, gone: then there is nothing of that name either
                final.unlink(missing_ok=True)
            self.abandon()
            raise DiskFailed(error.errno, error.strerror) from error
        os.close(self._descriptor)
        self._descriptor = -1

    def _look_for_marker(self) -> None:
        if self._marker is not None and not self._marker.exists():
            raise OSError(errno.ENODEV, "its marker is missing; is its disk mounted?")

    def abandon(self) -> None:
        """Close and remove what there is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(OSError):  # what stays is found and dealt with at the next start
            self._part.unlink(missing_ok=True)


def _make_folder(hour: Path) -> None:
    """Make `<camera>/<hour>` durably. The media folder itself must exist: a missing one is an unmounted disk."""
    for folder in (hour.parent, hour):
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
