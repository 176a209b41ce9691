"""One gateway per data folder: two would write the same files and command the same gates."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import refused


class FolderLock:
    """An advisory lock on the folder itself. The kernel lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises StoreError when another process has the folder, or there is no folder."""
        try:
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise refused(self._folder, error, "it cannot be used") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StoreError(f"another gateway runs on the data folder {self._folder}") from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go; also when it was never taken."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
