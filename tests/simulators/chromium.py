"""Debian's Chromium, as the tests start it.

Its headless shell has no window: a page in it costs a fifth of the processor time of one in the whole browser, which
does where the shell is missing.
"""

from __future__ import annotations

from pathlib import Path

from lacks import lacks

_PROGRAMS = (Path("/usr/lib/chromium/chromium-headless-shell"), Path("/usr/bin/chromium"))
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> Path:
    """Return the program; a missing one fails under CI and skips elsewhere."""
    program = next((path for path in _PROGRAMS if path.is_file()), None)
    if program is None:
        lacks("Chromium is missing: install Debian's chromium-headless-shell")
    return program
