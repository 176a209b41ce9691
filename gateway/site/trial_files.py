"""The files of a change on trial: what a restart needs to take back a site file that nobody confirmed.

| file            | content                                                                       |
|-----------------|-------------------------------------------------------------------------------|
| `before.toml`   | the site file of before the change                                            |
| `trial`         | the SHA-256 of the changed file; while it is there, the change is unconfirmed |

Both are in a folder of the data folder. Every function blocks on the disk, and raises OSError.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

from gateway.runtime.durable_files import sync_folder, write_durably

_SUFFIX = ".unconfirmed"


@dataclass(frozen=True, slots=True)
class AtStart:
    """The site file to start with.

    Attributes:
        text: of before an unconfirmed change; None for the site file as it is.
        notice: in one sentence, what became of the change; "" without one.
        put_back: whether the site file has the text of before again.
    """

    text: bytes | None = None
    notice: str = ""
    put_back: bool = False


@dataclass(frozen=True, slots=True)
class TrialFiles:
    """The site file at `path`, and `folder` with the files of a change on trial."""

    path: Path
    folder: Path

    def begin(self, *, before: bytes, after: bytes) -> None:
        """Note that the change is on trial, from before it takes effect."""
        self.folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        write_durably(self._before, before)
        write_durably(self._mark, _digest(after))

    def put(self, text: bytes) -> None:
        """Write the site file."""
        write_durably(self.path, text)

    def end(self) -> None:
        """Note that the change is confirmed, or that it was taken back."""
        self._mark.unlink(missing_ok=True)
        if self.folder.exists():
            sync_folder(self.folder)

    def take_back(self, *, before: bytes) -> None:
        """Put the site file of before in place; the other one is kept beside it, for whoever wrote it.

        The change is no longer on trial only once that is done: where the file cannot be written, each start takes
        the kept one until somebody writes another.
        """
        changed = self.path.read_bytes()
        if _digest(changed) != self._marked():
            self.end()  # somebody has written another file meanwhile, which is theirs
            return
        with contextlib.suppress(OSError):
            write_durably(self.path.with_name(self.path.name + _SUFFIX), changed)
        write_durably(self.path, before)
        self.end()

    def unconfirmed(self) -> bytes | None:
        """Return the site file of before while the present one is on trial, or None. Writes and raises nothing."""
        try:
            mark = self._marked()
            return self._before.read_bytes() if mark and _digest(self.path.read_bytes()) == mark else None
        except OSError:
            return None  # nothing was on trial, or there is no site file, which loading it says

    def at_start(self) -> AtStart:
        """Take back a change that was not confirmed when the last run ended. Raises nothing."""
        before = self.unconfirmed()
        if before is None:
            with contextlib.suppress(OSError):
                self.end()
            return AtStart()
        kept = self.path.with_name(self.path.name + _SUFFIX)
        try:
            self.take_back(before=before)
        except OSError as error:
            return AtStart(
                before,
                f"the last change of the site file was not confirmed, and it cannot be put back ({error.strerror}): the"
                f" gateway works by the file of before, {self._before}",
            )
        text = "the last change of the site file was not confirmed before the gateway ended; it was taken back"
        return AtStart(before, f"{text}, and is kept as {kept}", put_back=True)

    @property
    def _before(self) -> Path:
        return self.folder / "before.toml"

    @property
    def _mark(self) -> Path:
        return self.folder / "trial"

    def _marked(self) -> bytes:
        try:
            return self._mark.read_bytes().strip()
        except FileNotFoundError:
            return b""


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
