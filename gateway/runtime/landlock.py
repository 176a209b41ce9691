"""A sandbox for a process that reads what strangers send: Landlock (landlock(7)), where the kernel has it.

It needs no right and no other program. A confined process and all that it starts open files only beneath the named
folders. It signals, and traces, nobody outside; from version 9 on it also connects to no socket outside of them.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_ASK_VERSION, _PATH_BENEATH, _PR_SET_NO_NEW_PRIVS = 1, 1, 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RESOLVE_UNIX = 1 << 16
_HANDLED_BY = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV, 9: _RESOLVE_UNIX}
"""Rights to handle, by the version that brought them; version 1 has all that are not named above."""
_SCOPES_SINCE, _SCOPES = 6, 0b11  # abstract Unix sockets, and signals


def version() -> int:
    """Return the kernel's version of Landlock, 0 without it."""
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def confine(*, readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Confine this thread, and what it starts from now on, to these files and folders; return Landlock's version.

    Call it before other threads are started. Paths that do not exist are left out. Without Landlock it returns 0, and
    nothing is confined.

    Raises:
        OSError: the kernel has Landlock, and refuses the rules.
    """
    known = version()
    if not known:
        return 0
    handled = sum(rights for since, rights in _HANDLED_BY.items() if since <= known)
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES if known >= _SCOPES_SINCE else 0)
    size = 24 if known >= _SCOPES_SINCE else 16 if known >= 4 else 8
    rules = _checked(_call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        for paths, rights in ((readable, _READ), (writable, handled & ~_EXECUTE)):
            for path in paths:
                _allow(rules, path, rights & handled)
        _checked(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)))
    finally:
        os.close(rules)
    return known


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        beneath = struct.pack("=Qi", rights, place)
        _checked(_call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), beneath, ctypes.c_uint32(0)))
    finally:
        os.close(place)


def _call(number: int, *words: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *words))


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
