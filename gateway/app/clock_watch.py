"""The program `edge-gateway-clock`: tell the gateway by a file whether the machine's clock is synchronised.

The kernel call that reads the state (adjtimex) can also set the clock, so the gateway's systemd unit forbids it. This
program runs in a unit of its own that may do nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NoReturn

from gateway.runtime.clock import WATCH_MARK, MachineClock

_SECONDS = 10.0


def look(machine: MachineClock, mark: Path) -> None:
    """Touch the mark file while the kernel says that the clock is synchronised; else remove it."""
    if machine.is_synchronised():
        mark.touch()
    else:
        mark.unlink(missing_ok=True)


def main() -> NoReturn:
    """Update the mark file every ten seconds until this process is ended."""
    while True:
        look(MachineClock(), WATCH_MARK)
        time.sleep(_SECONDS)  # noqa: TID251 (a program without an event loop)
