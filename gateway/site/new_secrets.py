"""A secret that the gateway makes: on disk before it is handed out, in its place only once it is in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.runtime.durable_files import sync_folder

_LARGEST = 4096


class NewSecret:
    """A secret's file in the making.

    `begin` writes it beside its place, so that a power cut after it was handed out loses nothing; the next `begin`
    takes it up again. `keep` puts it in its place, and never over one that is there.

    Args:
        folder: the site's secrets folder; made when it is missing, for its owner alone.
        name: the secret's.
    """

    def __init__(self, *, folder: Path, name: str) -> None:
        self._place = folder / name
        self._pending = folder / f".{name}.pending"

    @property
    def place(self) -> Path:
        """The file that `keep` makes."""
        return self._place

    def begin(self, make: Callable[[], str]) -> str:
        """Return the secret already begun, else write what `make` gives. Raises ConfigError."""
        folder = self._place.parent
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if self._place.exists():
                raise ConfigError(f"{self._place} exists already")
            begun = self._begun()
            if begun:
                return begun
            text = make()
            self._pending.unlink(missing_ok=True)
            descriptor = os.open(self._pending, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                if os.geteuid() == 0:  # the gateway, not root, is to read it
                    owner = folder.stat()
                    os.fchown(descriptor, owner.st_uid, owner.st_gid)
                file.write(text + "\n")
                file.flush()
                os.fsync(descriptor)
            sync_folder(folder)
        except OSError as error:
            raise ConfigError(f"{self._pending} cannot be written: {error.strerror}") from error
        return text

    def keep(self) -> None:
        """Put it in its place for good. ConfigError when the disk or the place refuses; it stays begun then."""
        try:
            os.link(self._pending, self._place)
            self._pending.unlink()
            sync_folder(self._place.parent)
        except OSError as error:
            raise ConfigError(f"{self._place} cannot be made: {error.strerror}") from error

    def _begun(self) -> str:
        """Return the text that an interrupted attempt left; "" if there is none or it was cut off."""
        try:
            text = self._pending.read_bytes()[:_LARGEST].decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text[:-1] if text.endswith("\n") else ""
