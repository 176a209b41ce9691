"""Files whose names outlast a power cut, as their content does."""

from __future__ import annotations

import contextlib
import os
from functools import partial
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


def write_durably(path: Path, data: bytes, *, mode: int = 0o640) -> None:
    """Replace a file's content in one step: after a power cut it has the old content or the new. Blocks on the disk.

    A file that is there keeps its mode and, as far as this user may do that, its owner; a new one gets `mode`.

    Raises:
        OSError: it cannot be written; it is as it was.
    """
    path = path.resolve()  # a link to the file stays one
    draft = path.with_name(f".{path.name}.new")
    before = path.stat() if path.exists() else None
    try:
        with open(draft, "wb", opener=partial(os.open, mode=mode)) as file:
            if before is not None:
                os.fchmod(file.fileno(), before.st_mode & 0o7777)
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
