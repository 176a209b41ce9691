"""Files of a new site. Each is written durably under a draft name first; an existing site file is never replaced."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from gateway.domain.errors import ConfigError
from gateway.runtime.durable_files import sync_folder

_USER = "edge-gateway"
_PRIVATE = 0o600
_SHARED = 0o640
_PUBLIC = 0o644


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The folder of a site file. If root makes files in it, they are given to the gateway's user."""

    site: Path

    @property
    def secrets(self) -> Path:
        """The folder of secrets, readable by the gateway's user only."""
        return self.site.parent / "secrets"

    @property
    def tls(self) -> Path:
        """The folder of certificates and keys."""
        return self.site.parent / "tls"

    def refuse_existing(self) -> None:
        """Raise ConfigError if the site file exists already."""
        if self.site.exists():
            raise ConfigError(
                f"{self.site} exists already and is not changed; edit it, "
                f"then run edge-gateway check {quote(str(self.site))}"
            )

    def prepare(self) -> None:
        """Make the folders. Raises OSError."""
        self.site.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        for folder, mode in ((self.secrets, 0o700), (self.tls, 0o750)):
            folder.mkdir(mode=mode, exist_ok=True)
            give_to_gateway(folder)

    def keep_secret(self, name: str, text: str) -> None:
        """Write a secret. Raises ConfigError if a secret of this name exists with another text."""
        place = self.secrets / name
        if place.exists() and place.read_text("utf-8").rstrip("\n") != text:
            raise ConfigError(f"{place} exists already with another text; remove it, or move it away")
        write(place, text.encode() + b"\n", mode=_PRIVATE)

    def write_site(self, text: str) -> Path:
        """Write the site file under a draft name; return the draft's path, to be checked before `keep_site`."""
        draft = self.site.with_name(f".{self.site.name}.new")
        write(draft, text.encode(), mode=_SHARED)
        return draft

    def keep_site(self, draft: Path) -> None:
        """Give the draft the site file's name. Raises ConfigError if a site file exists by now."""
        try:
            os.link(draft, self.site)
            draft.unlink()
            sync_folder(self.site.parent)
        except FileExistsError as error:
            raise ConfigError(f"{self.site} exists already and is not changed") from error


def write(path: Path, data: bytes, *, mode: int = _PUBLIC, for_gateway: bool = True) -> None:
    """Write a file durably, with its final `mode` from the first byte on. Raises OSError."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    if for_gateway:
        give_to_gateway(draft)
    draft.replace(path)
    sync_folder(path.parent)


def give_to_gateway(path: Path) -> None:
    """Give a path that root has made to the gateway's user; do nothing for other users or without that user."""
    if os.geteuid() == 0 and _has_user():
        shutil.chown(path, _USER, _USER)


def prepare_data(data: Path) -> None:
    """Make the data folder as systemd would, if it does not exist. Raises ConfigError."""
    try:
        data.mkdir(mode=0o750, parents=True)
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigError(f"{data} cannot be made: {error.strerror}") from error
    give_to_gateway(data)


def _has_user() -> bool:
    try:
        pwd.getpwnam(_USER)
    except KeyError:
        return False
    return True
