"""A site file as it was loaded, with its text and digests of the profiles and secrets that it uses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drivers.device import Device
from drivers.settings import NamesSecret
from gateway.domain.errors import ConfigError
from gateway.site.fault import Fault
from gateway.site.faults import SiteFaults
from gateway.site.fields import marked
from gateway.site.file_accounts import FileAccount, accounts_of
from gateway.site.load import find_profile, load, profile_folders
from gateway.site.models import Site
from gateway.site.secrets import Secrets


@dataclass(frozen=True, slots=True)
class LoadedSite:
    """A valid site file.

    Attributes:
        site: the content of the file.
        text: the bytes of the file.
        profiles: a digest of each profile in use, by its name.
        secrets: a digest of each secret in use, by its name; never written to disk.
        accounts: the accounts that a file of an older format holds, for the register.
    """

    site: Site
    text: bytes = field(default=b"", repr=False)
    profiles: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    accounts: tuple[FileAccount, ...] = ()


def load_whole(path: Path, *, secrets: Secrets, text: bytes | None = None) -> LoadedSite:
    """Load a site file, or `text` instead of the file's own, with digests. Blocks on the disk. Raises SiteFaults."""
    if text is None:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise SiteFaults(path, (Fault("", f"cannot be read: {error.strerror}"),)) from error
    site = load(path, secrets=secrets, text=text)
    return LoadedSite(
        site=site,
        text=text,
        profiles=dict(_profiles(site, path)),
        secrets=dict(_digests(site, secrets)),
        accounts=accounts_of(text),
    )


def secrets_of(device: Device) -> tuple[str, ...]:
    """Return the names of a device's secrets."""
    return tuple(name for _, name, _ in marked(device, NamesSecret))


def _profiles(site: Site, path: Path) -> Iterator[tuple[str, str]]:
    folders = profile_folders(site, path)
    for name in sorted({device.profile_name for device in site.devices} - {""}):
        found = find_profile(name, folders)
        if found is not None:
            yield name, hashlib.sha256(found.read_bytes()).hexdigest()


def _digests(site: Site, secrets: Secrets) -> Iterator[tuple[str, str]]:
    for name in sorted({name for _, name, _ in marked(site, NamesSecret)}):
        try:
            yield name, hashlib.sha256(secrets.get(name, may_be_empty=True).encode()).hexdigest()
        except ConfigError:
            continue  # it was there when the file was checked; the part that needs it reports the error
