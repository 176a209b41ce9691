"""Places of finished backups: a folder, an SFTP server, an S3-compatible store."""

from __future__ import annotations

import errno
import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.backup.faults import PlaceFailed, folder_fault
from gateway.domain.errors import ConfigError
from gateway.site.backup_section import BackupSection, S3Address, SftpAddress

SUFFIX = ".backup.tar.gz"
"""Ending of a backup's name; the name begins with the time at which it was made."""


class Destination(Protocol):
    """A far place of backups. Its methods block, within time-outs, and raise ConfigError or PlaceFailed."""

    def put(self, file: Path, name: str) -> None:
        """Upload a file. It has its name there only once the whole of it has been read back and compared."""

    def get(self, name: str, into: Path) -> None:
        """Download a file to `into`, which is not there yet."""

    def names(self) -> list[str]:
        """Return the names of the backups there, the oldest first."""

    def delete(self, name: str) -> None:
        """Delete a backup."""


def far_place(address: SftpAddress | S3Address, section: BackupSection, secret: Callable[[str], str]) -> Destination:
    """Return the far place at an address, reached as the section says. Raises ConfigError when the section lacks it."""
    if fault := section.fault_for(address):
        raise ConfigError(f"[backup]: {fault}")
    _expect_network()
    found = {key: secret(name) for key, name in section.secrets().items()}
    if isinstance(address, SftpAddress):
        from gateway.backup.sftp import SftpPlace  # noqa: PLC0415  # a backup to a folder needs no SSH

        return SftpPlace(address, host_key=section.host_key or "", password=found.get("password"), key=found.get("key"))
    from gateway.backup.s3 import S3Place  # noqa: PLC0415  # a backup to a folder needs no S3

    return S3Place(
        address,
        endpoint=section.endpoint,
        region=section.region,
        access_key=found["access_key"],
        secret_key=found["secret_key"],
        ca_file=section.ca_file,
    )


def _expect_network() -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
        raise ConfigError(
            "the unit of backups may not use the network: put edge-gateway-backup-elsewhere.conf in its place,"
            " as the page on backups says"
        ) from error


def split(address: SftpAddress | S3Address) -> tuple[SftpAddress | S3Address, str]:
    """Split an address into a folder's and the name of a backup in it; "" when it names a folder only."""
    if isinstance(address, S3Address):
        folder, _, name = address.prefix.rpartition("/")
        return (S3Address(address.bucket, folder), name) if name.endswith(SUFFIX) else (address, "")
    if address.path.name.endswith(SUFFIX):
        return SftpAddress(address.user, address.host, address.port, address.path.parent), address.path.name
    return address, ""


def delete_older(folder: Path, *, keep: int) -> list[Path]:
    """Delete the older backups in a folder, but for so many; return those deleted. Raises FolderRefuses, StoreError."""
    older = sorted(folder.glob(f"*{SUFFIX}"))[:-keep]
    try:
        for path in older:
            path.unlink()
    except OSError as error:
        raise folder_fault(folder, error) from error
    return older


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def expect_same(found: tuple[int, str], sent: tuple[int, str], place: str) -> None:
    """Raise PlaceFailed unless the size and SHA-256 that a place gives are those that were sent."""
    if found != sent:
        raise PlaceFailed(f"the {place} gives other bytes than were sent: check its disks")
