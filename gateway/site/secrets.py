"""Secrets are named in the site file and looked up here; they are never written in it."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.domain.errors import ConfigError


class Secrets:
    """Looks secrets up by name: systemd's credentials directory, the environment, then a 0600 file.

    The environment variable of `central-password` is `EDGE_GATEWAY_SECRET_CENTRAL_PASSWORD`; the file is
    `secrets/central-password` beside the site file.
    """

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> str:
        """The secret's text, without its final newline. Raises ConfigError with one sentence when it cannot be had."""
        credentials = os.environ.get("CREDENTIALS_DIRECTORY")
        if credentials and (found := Path(credentials) / name).is_file():
            return _read_secret(found)
        variable = "EDGE_GATEWAY_SECRET_" + name.upper().replace("-", "_").replace(".", "_")
        if variable in os.environ:
            return os.environ[variable]
        file = self._folder / name
        if not file.is_file():
            raise ConfigError(f"no secret {name!r}: not among systemd's credentials, not in {variable}, no file {file}")
        if file.stat().st_mode & 0o077:
            raise ConfigError(f"secret file {file} may be read by others; make it mode 0600")
        return _read_secret(file)


def _read_secret(path: Path) -> str:
    try:
        return path.read_text("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"secret file {path} cannot be read: {error}") from error
