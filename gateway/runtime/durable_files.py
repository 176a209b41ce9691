"""Files whose names outlast a power cut, as their content does."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make durable which names are in the folder: those that were made, changed and removed. Blocks on the disk.

    Raises:
        OSError: it cannot be opened, or the disk failed; nobody knows then which names would be there.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
