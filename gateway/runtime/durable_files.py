"""Durable writes: after a power cut, both the content and the names of files are on disk."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make all additions, renames and removals of names in a folder durable. Blocks on the disk.

    Raises:
        OSError: the folder cannot be opened, or the disk failed; it is then unknown which changes are durable.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes, *, mode: int = 0o640) -> None:
    """Replace a file's content in one step: after a power cut it has the old content or the new. Blocks on the disk.

    An existing file keeps its mode and, if this user may set it, its owner. A new file gets `mode`.

    Raises:
        OSError: the file cannot be written and is unchanged.
    """
    path = path.resolve()  # a symbolic link stays, and its target is replaced
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
