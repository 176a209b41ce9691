"""The files of a change on trial, with which a restart takes back a site file that was not confirmed.

| file            | content                                                                       |
|-----------------|-------------------------------------------------------------------------------|
| `before.toml`   | the site file of before the change                                            |
| `trial`         | the SHA-256 of the changed file; while it is there, the change is unconfirmed |

Both are in a folder of the data folder. All methods block on the disk, and raise OSError unless they say otherwise.
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
        text: the text from before an unconfirmed change; None to use the site file as it is.
        notice: a sentence about the unconfirmed change, "" if there was none.
        put_back: whether the site file has the earlier text again.
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
        """Record that a change is on trial. Call it before the change takes effect."""
        self.folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        write_durably(self._before, before)
        write_durably(self._mark, _digest(after))

    def put(self, text: bytes) -> None:
        """Write the site file."""
        write_durably(self.path, text)

    def end(self) -> None:
        """Record that the change was confirmed or taken back."""
        self._mark.unlink(missing_ok=True)
        if self.folder.exists():
            sync_folder(self.folder)

    def take_back(self, *, before: bytes) -> None:
        """Restore the earlier site file. The changed one is kept beside it as `*.unconfirmed`, for its author.

        The trial ends only when that is done. While the site file cannot be written, each start uses the earlier text,
        until somebody writes another file.
        """
        changed = self.path.read_bytes()
        if _digest(changed) != self._marked():
            self.end()  # somebody has written another file meanwhile, which must not be replaced
            return
        with contextlib.suppress(OSError):
            write_durably(self.path.with_name(self.path.name + _SUFFIX), changed)
        write_durably(self.path, before)
        self.end()

    def unconfirmed(self) -> bytes | None:
        """Return the earlier site file while the present one is on trial, else None. Writes nothing; never raises."""
        try:
            mark = self._marked()
            return self._before.read_bytes() if mark and _digest(self.path.read_bytes()) == mark else None
        except OSError:
            return None  # nothing was on trial, or there is no site file, which loading reports

    def at_start(self) -> AtStart:
        """Take back a change that was not confirmed when the last run ended. Never raises."""
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
