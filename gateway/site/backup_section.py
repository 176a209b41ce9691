"""`[backup]`: where backups go, and how a far place is reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from drivers.settings import NamesSecret, SecretName, Section, following
from gateway.site.addresses import endpoint_of
from gateway.site.fields import NamesAuthorities, marked

_SFTP, _S3 = "sftp://", "s3://"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SFTP_FORM = "must be like sftp://user@host:port/folder, without a password"
_S3_FORM = "must be like s3://bucket/prefix; a bucket has 3 to 63 small letters, digits, '.' or '-'"


@dataclass(frozen=True, slots=True)
class SftpAddress:
    """A file or folder on an SFTP server."""

    user: str
    host: str
    port: int
    path: PurePosixPath

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SFTP}{self.user}@{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True)
class S3Address:
    """An object or a prefix in a bucket of an S3-compatible store."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"{_S3}{self.bucket}/{self.prefix}"


Address = Path | SftpAddress | S3Address


def backup_address(text: str) -> Address:
    """Parse where a backup is or goes. Raises ValueError with one sentence that does not repeat the text."""
    if text.startswith(_SFTP):
        return _sftp_address(text)
    if text.startswith(_S3):
        bucket, _, prefix = text.removeprefix(_S3).partition("/")
        if not _BUCKET.fullmatch(bucket) or ".." in prefix.split("/"):
            raise ValueError(_S3_FORM)
        return S3Address(bucket, prefix.strip("/"))
    if "://" in text or not text:
        raise ValueError("must be a folder, sftp://… or s3://…")
    return Path(text)


def _sftp_address(text: str) -> SftpAddress:
    try:
        parts = urlsplit(text)
        port = 22 if parts.port is None else parts.port
    except ValueError as error:
        raise ValueError(_SFTP_FORM) from error
    if parts.password is not None:
        raise ValueError("must not hold a password; name a secret in 'password'")
    if not parts.username or not parts.hostname or not port or not parts.path.strip("/") or parts.query:
        raise ValueError(_SFTP_FORM)
    return SftpAddress(
        unquote(parts.username), parts.hostname, port, PurePosixPath("/" + unquote(parts.path).strip("/"))
    )


class BackupSection(Section):
    """`[backup]`: where backups go, how many are kept there, and how a far place is reached."""

    target: str = Field(
        default="/var/backups/edge-gateway",
        description="a folder, `sftp://user@host:port/folder` or `s3://bucket/prefix`; for this gateway alone",
    )
    keep: int = Field(default=7, ge=1, le=10_000, description="so many backups; older ones are deleted")
    footage: bool = Field(default=False, description="with the footage that camera events hold, and their evidence")
    overdue_hours: float = Field(
        default=30, ge=0, le=10_000, description="a problem once the last good backup is so old; 0: never"
    )
    host_key: str | None = Field(
        default=None, description="SFTP: the server's public key, like `ssh-ed25519 AAAA…`; no other is accepted"
    )
    password: SecretName | None = Field(default=None, description="SFTP: the user's password")
    key: SecretName | None = Field(default=None, description="SFTP: the user's private key, instead of a password")
    endpoint: str | None = Field(default=None, description="S3: `https://host:port` of the store; none: Amazon's")
    region: Annotated[str, following(r"[a-z0-9-]{1,40}", "must be small letters, digits and '-', at most 40")] = Field(
        default="us-east-1", description="S3: the bucket's region"
    )
    access_key: SecretName | None = Field(default=None, description="S3: the access key's id")
    secret_key: SecretName | None = Field(default=None, description="S3: the secret of the access key")
    ca_file: Annotated[str, NamesAuthorities(loss="no backup is sent to the S3 store")] | None = Field(
        default=None, description="S3: authorities to trust instead of the usual ones"
    )

    @field_validator("target")
    @classmethod
    def _is_address(cls, value: str) -> str:
        found = backup_address(value)
        if isinstance(found, Path) and not found.is_absolute():
            raise ValueError("must be a folder with its whole path, sftp://… or s3://…")
        return value

    @field_validator("host_key")
    @classmethod
    def _is_public_key(cls, value: str | None) -> str | None:
        if value is None:
            return None
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # lanes start faster without it
        from cryptography.hazmat.primitives.serialization import load_ssh_public_key  # noqa: PLC0415  # likewise

        try:
            load_ssh_public_key(value.strip().encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError(
                "must be a public key like 'ssh-ed25519 AAAA…', as ssh-keyscan prints after the host"
            ) from error
        return value.strip()

    @field_validator("endpoint")
    @classmethod
    def _is_endpoint(cls, value: str | None) -> str | None:
        if value is not None:
            endpoint_of(value, schemes=("https", "http"))
        return value

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if fault := self.fault_for(self.address):
            raise ValueError(fault)
        return self

    @property
    def address(self) -> Address:
        """Address of the place that backups go to."""
        return backup_address(self.target)

    def fault_for(self, address: Address) -> str:
        """Return the setting that lacks for reaching an address, as a sentence; "" when none lacks."""
        if isinstance(address, SftpAddress):
            if self.host_key is None:
                return "'host_key' is missing: without the server's key, backups could go to anybody who answers for it"
            if (self.password is None) == (self.key is None):
                return "an SFTP server needs either 'password' or 'key', the name of a secret"
        if isinstance(address, S3Address) and (self.access_key is None or self.secret_key is None):
            return "an S3 store needs 'access_key' and 'secret_key', the names of secrets"
        return ""

    def secrets(self) -> Mapping[str, str]:
        """Map the keys that name secrets to those names."""
        return {key: name for key, name, _ in marked(self, NamesSecret)}
