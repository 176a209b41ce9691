"""The program `edge-gateway-clock`: tell the gateway by a file whether the machine's clock is synchronised.

The kernel call that asks is the one that sets the clock, so the gateway's own unit is refused both. This program runs
in a unit that may do nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NoReturn

from gateway.runtime.clock import WATCH_MARK, MachineClock

_SECONDS = 10.0


def look(machine: MachineClock, mark: Path) -> None:
    """Renew the mark while the kernel says that the clock is synchronised; remove it while it does not."""
    if machine.is_synchronised():
        mark.touch()
    else:
        mark.unlink(missing_ok=True)


def main() -> NoReturn:
    """Look every ten seconds until this process is ended."""
    while True:
        look(MachineClock(), WATCH_MARK)
        time.sleep(_SECONDS)  # noqa: TID251 (a program without an event loop)
