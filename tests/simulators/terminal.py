"""A terminal in which a test runs the program: it reads what the program says, and types."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from codecs import getincrementaldecoder
from pathlib import Path
from types import TracebackType
from typing import Self

from forked import Forked

_ENVIRON = {"PATH": os.environ["PATH"], "COLUMNS": "120"}
_SECONDS = 20


class Terminal:
    """Runs the program for as long as the context lasts."""

    def __init__(self, *words: str | Path) -> None:
        self._ours, theirs = pty.openpty()
        self._process = Forked("gateway", *words, source=theirs, output=theirs, errors=theirs, env=_ENVIRON)
        os.close(theirs)
        self.heard = ""
        self._decoder = getincrementaldecoder("utf-8")()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def hears(self, pattern: str) -> re.Match[str]:
        """Read until the program has said this."""
        deadline = time.monotonic() + _SECONDS
        while not (found := re.search(pattern, self.heard, re.DOTALL)):
            assert time.monotonic() < deadline, self.heard
            if select.select([self._ours], [], [], 1)[0]:
                try:
                    self.heard += self._decoder.decode(os.read(self._ours, 65536))
                except OSError:  # the other end has closed
                    found = re.search(pattern, self.heard, re.DOTALL)
                    assert found, self.heard
                    break
        return found

    def types(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, line.encode() + b"\n")

    def ends(self) -> int:
        """Wait for the program's end; return its exit status."""
        return self._process.wait(_SECONDS)
