"""Unix sockets in folders of any depth.

A socket's address has at most 107 bytes (unix(7), `sun_path`), a path up to 4,095. So the folder is opened, and the
socket is addressed through the folder's descriptor: `/proc/self/fd/7/interface.sock`.
"""

from __future__ import annotations

import os
import pwd
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

INTERFACE_SOCKET = "interface.sock"
"""The name, in the run folder, of the socket on which the interface is served to this machine."""
_BACKLOG = 128
_CREDENTIALS = struct.Struct("3i")


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a short address of the socket at `path`, valid in this process within the context.

    Raises:
        OSError: the folder cannot be opened.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path, *, mode: int = 0o600) -> socket.socket:
    """Listen at `path`, in place of any file of that name. The folder is made if it is missing.

    `mode`: the file mode, which decides who can connect besides root; by default only this user.

    The socket gets its name after it listens, so that a client that finds the name can connect at once.

    Raises:
        OSError: the socket cannot be made in the folder.
    """
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    early = path.with_name(f"{path.name}.new")
    early.unlink(missing_ok=True)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(early) as address:
            end.bind(address)
        early.chmod(mode)  # before it listens: nobody can have connected
        end.listen(_BACKLOG)
        early.replace(path)
        end.setblocking(False)  # noqa: FBT003 (the socket's own method)
    except BaseException:  # nobody else knows of the socket yet, so it is closed whatever went wrong
        end.close()
        raise
    return end


def connect(path: Path, *, within: float) -> socket.socket:
    """Connect to the socket at `path`; blocks for at most `within` seconds.

    Raises:
        OSError: nobody listens there, or it belongs to another user.
    """
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(path) as address:
            end.settimeout(within)
            end.connect(address)
        end.setblocking(False)  # noqa: FBT003 (the socket's own method)
    except BaseException:  # nobody else knows of the socket yet, so it is closed whatever went wrong
        end.close()
        raise
    return end


def peer_user(end: socket.socket) -> int:
    """Return the user of the process at the other end, as the kernel knows it (unix(7), SO_PEERCRED)."""
    _, user, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


def is_own_process(end: socket.socket, *, nobody_signs_in: Callable[[int], bool] | None = None) -> bool:
    """Return whether the other end must be a process of the gateway itself, such as a camera worker.

    So it is if it has this process's user, in whose name nobody can sign in, as that of the shipped unit. Those who may
    ask the gateway, root and members of its group, have users of their own.
    """
    user = peer_user(end)
    return user == os.geteuid() and (nobody_signs_in or _has_no_shell)(user)


def _has_no_shell(user: int) -> bool:
    try:
        return pwd.getpwuid(user).pw_shell.rpartition("/")[2] in ("nologin", "false")
    except KeyError:
        return False
