"""Files and devices that this process has open."""

from __future__ import annotations

import contextlib
from pathlib import Path


def open_files() -> set[str]:
    """Return the targets of this process's descriptors. A device that is gone is still under the name it had.

    While a terminal's descriptor is open, the system gives its name to no other terminal.
    """
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own
            found.add(str(descriptor.readlink()).removesuffix(" (deleted)"))
    return found
