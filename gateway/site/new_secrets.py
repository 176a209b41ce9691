"""A secret that the gateway makes: on disk before anything uses it, and under its name once it is in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.runtime.durable_files import sync_folder

_LARGEST = 4096


class NewSecret:
    """A new secret's file.

    `begin` writes the secret to a pending file, so that a power cut after its first use does not lose it; the next
    `begin` returns it again. `keep` gives the file its final name, and never replaces an existing one.

    Args:
        folder: the site's secrets folder; it is made with mode 0700 if it is missing.
        name: the secret's name.
    """

    def __init__(self, *, folder: Path, name: str) -> None:
        self._place = folder / name
        self._pending = folder / f".{name}.pending"

    @property
    def place(self) -> Path:
        """The file that `keep` makes."""
        return self._place

    def begin(self, make: Callable[[], str]) -> str:
        """Return the pending secret; if there is none, write the one that `make` returns. Raises ConfigError."""
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
                if os.geteuid() == 0:  # the gateway, which is not root, must be able to read it
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
        """Give the pending file its final name. If it raises ConfigError, the secret stays pending."""
        try:
            os.link(self._pending, self._place)
            self._pending.unlink()
            sync_folder(self._place.parent)
        except OSError as error:
            raise ConfigError(f"{self._place} cannot be made: {error.strerror}") from error

    def _begun(self) -> str:
        """Return the pending secret of an earlier attempt; "" if there is none or it is incomplete."""
        try:
            text = self._pending.read_bytes()[:_LARGEST].decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text[:-1] if text.endswith("\n") else ""
