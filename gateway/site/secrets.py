"""Look-up of secrets, which the site file only names, and the files of new ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.runtime.durable_files import sync_folder
from gateway.texts import Text, text

_MAX_BYTES = 65_535
"""The longest password that MQTT carries (1.5.6 there); no other use takes more."""
_LARGEST = 4096


def _report_nothing(_secret: str) -> None:
    """Ignore a secret that was read; the default."""


class Secrets:
    """Look-up of secrets by name: systemd's credentials directory, the environment, then a 0600 file.

    The environment variable of `central-password` is `EDGE_GATEWAY_SECRET_CENTRAL_PASSWORD`; the file is
    `secrets/central-password` beside the site file. `report` is called with each secret, so that logs can mask it.
    """

    def __init__(
        self, *, folder: Path, environ: Mapping[str, str] = os.environ, report: Callable[[str], None] = _report_nothing
    ) -> None:
        self._folder = folder
        self._environ = environ
        self._report = report

    def get(self, name: str, *, may_be_empty: bool = False) -> str:
        """Return the secret's text without a final line ending. Raises ConfigError with one sentence.

        `may_be_empty`: for the password of a device or camera, some of which have accounts without one.
        """
        secret = self._find(name)
        if not secret and not may_be_empty:
            raise ConfigError(f"secret {name!r} is empty")
        self._report(secret)
        return secret

    def how_changed(self, name: str) -> Text:
        """Tell a person where the secret is, and what puts another one in force. Never raises."""
        credentials = self._environ.get("CREDENTIALS_DIRECTORY")
        if credentials and (Path(credentials) / name).exists():
            return text("secret.in_credential", name=name)
        variable = _variable(name)
        if variable in self._environ:
            return text("secret.in_variable", name=variable)
        return text("secret.in_file", path=str(self._folder / name))

    def _find(self, name: str) -> str:
        credentials = self._environ.get("CREDENTIALS_DIRECTORY")
        if credentials and (found := _read(Path(credentials) / name)) is not None:
            return found
        variable = _variable(name)
        if variable in self._environ:
            return _checked(self._environ[variable], variable)
        file = self._folder / name
        found = _read(file, private=True)
        if found is None:
            raise ConfigError(f"no secret {name!r}: not among systemd's credentials, not in {variable}, no file {file}")
        return found


def _variable(name: str) -> str:
    return "EDGE_GATEWAY_SECRET_" + name.upper().replace("-", "_").replace(".", "_")


def _checked(text: str, variable: str) -> str:
    """Return the text of an environment variable. Raises ConfigError if it is too long, or no UTF-8."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ConfigError(f"the environment variable {variable} is not UTF-8 text") from None  # the cause would show it
    if size > _MAX_BYTES:
        raise ConfigError(f"the environment variable {variable} is larger than {_MAX_BYTES} bytes; a secret is shorter")
    return text


def _read(path: Path, *, private: bool = False) -> str | None:
    """Return a file's text, None without such a file. Raises ConfigError if others can read a `private` file."""
    try:
        with path.open("rb") as file:
            if private and os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigError(f"secret file {path} may be read by others; make it mode 0600")
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"secret file {path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"secret file {path} is larger than {_MAX_BYTES} bytes; a secret is shorter")
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError(f"secret file {path} is not UTF-8 text") from None  # the cause would show its bytes


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
