"""The sandbox of a camera worker, which parses what cameras and viewers send.

It opens the program, the system's libraries and settings of the network, and its media folder. It opens neither the
databases, nor the site file, nor secrets.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

import drivers
import gateway
from gateway.runtime import landlock

log = structlog.get_logger(__name__)

Identity = tuple[int, int]
"""Device and inode of a folder."""
_LOOK_SECONDS = 2.0
_OF_ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "gai.conf", "host.conf", "hosts", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "pki", "protocols", "resolv.conf"),
    *("services", "ssl", "timezone"),
)
_OF_RUN = ("NetworkManager", "edge-gateway-clock", "resolvconf", "systemd/resolve", "systemd/timesync")
_READABLE = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/sys"),
    *(f"/etc/{name}" for name in _OF_ETC),
    *(f"/run/{name}" for name in _OF_RUN),
)
_WRITABLE = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/proc")
"""`/proc`: clip cutters set their own place among those that the kernel ends when memory runs out."""


def confine_worker(*, media: Path, turn: Path) -> Identity:
    """Confine this process to its work, where the kernel can; else the log says so. Return which folder `media` is.

    `turn` is shared with other workers. Call it once the worker's socket listens, and before threads are started.
    """
    turn.touch(mode=0o600)
    # Not all of `sys.path`: it begins with the present folder, which is / in a unit.
    program = [Path(each) for each in (sys.prefix, sys.base_prefix, *gateway.__path__, *drivers.__path__)]
    readable = [path for path in program if not media.is_relative_to(path)] + [Path(name) for name in _READABLE]
    found = _identity(media)
    try:
        known = landlock.confine(readable=readable, writable=[Path(name) for name in _WRITABLE] + [media, turn])
    except OSError as error:
        log.warning("camera_worker_not_confined", error=error.strerror)
        return found
    if known:
        log.info("camera_worker_confined", landlock=known)
    else:
        log.warning("camera_worker_not_confined", error="the kernel has no Landlock")
    return found


async def another_disk(media: Path, before: Identity, ended: Callable[[], None]) -> None:
    """End the worker when another folder takes the place of its media folder: its rights are for the one before."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if await asyncio.to_thread(_identity, media) != before:
            log.info("camera_worker_media_changed")
            ended()
            return


def _identity(media: Path) -> Identity:
    try:
        found = media.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
