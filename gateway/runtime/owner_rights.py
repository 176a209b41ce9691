"""The rights of a folder's owner, for root's work in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
