"""The file of a backup: a compressed archive, authenticated by a passphrase, its secrets sealed by it.

The manifest comes first and has the size and the SHA-256 of every other member. The second member is its proof: an
HMAC-SHA256 (RFC 2104) of the manifest's bytes. Secrets are one member, encrypted with AES-256-GCM. scrypt (RFC 7914)
derives each key of the passphrase and a salt of its own. Nothing of a manifest is believed before its proof is right.
"""

from __future__ import annotations

import contextlib
import grp
import gzip
import hashlib
import hmac
import io
import os
import pwd
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from gateway.backup.destinations import SUFFIX
from gateway.domain.errors import ConfigError, StoreError

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64_000_000
"""A backup with footage lists some 150 bytes for each segment."""
_PROOF = "manifest.proof"
_PROOF_MARK = b"edge-gateway proof 1\n"
_PIECE = 1024 * 1024
_DATED = re.compile(r"\d{4}-\d\d-\d\dT\d{6}\.\d{3}" + re.escape(SUFFIX))
_SEAL = b"edge-gateway seal 1\n"
_SALT_BYTES, _NONCE_BYTES = 16, 12
SCRYPT_COST = 2**16
"""64 MiB and about 0.2 s for each passphrase tried."""
_LARGEST_SECRETS = 64 * _PIECE
_LARGEST_HEADERS = 64 * 1024
"""Bytes before a member's content. A backup needs 512, and a few thousand for a long name."""


Opener = Callable[[], BufferedReader]
"""Opens a file for reading."""


class Member(BaseModel):
    """One file of the backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: NonNegativeInt
    sha256: str
    mode: int
    owner: str
    group: str


@dataclass(frozen=True, slots=True)
class Secret:
    """A file of the sealed member."""

    content: bytes
    mode: int
    owner: str
    group: str


class BackupManifest(BaseModel):
    """Contents of a backup.

    Attributes:
        made_at: UTC, ISO 8601.
        schemas: the schema of each database file, by its name.
        members: by their names; `site/` is the site file's folder, `data/` the data folder.
        site_file: its name in `site/`.
        has_secrets: whether a sealed member is there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    version: str
    site: str
    made_at: str
    site_file: str
    schemas: dict[str, int]
    has_secrets: bool
    members: dict[str, Member]


class _Unzipped(gzip.GzipFile):
    """The archive's bytes. `left`: how many may be read before the next content; None for any number."""

    left: int | None = None

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes. Raises tarfile.ReadError if they are more than may be read."""
        if self.left is not None:
            self.left -= self.left + 1 if size is None or size < 0 else size
            if self.left < 0:
                raise tarfile.ReadError("headers of a member are too large")
        return super().read(size)


class _Archive(tarfile.TarFile):
    """A backup that is read, with a bound on headers, because tarfile keeps them in memory however large they are."""

    def __init__(self, unzipped: _Unzipped) -> None:
        self._unzipped = unzipped
        super().__init__(fileobj=unzipped)

    def next(self) -> tarfile.TarInfo | None:
        """Return the next member, None at the end."""
        self._unzipped.left = _LARGEST_HEADERS
        try:
            return super().next()
        finally:
            self._unzipped.left = None


def usual_name(made_at: str) -> str:
    """Return the name of a backup that was made at this time, by which the newest in a folder is found."""
    return f"{made_at[:23].replace(':', '')}{SUFFIX}"


def member_of(opened: Opener, original: os.stat_result | None = None) -> Member:
    """Return the size and hash of a file, with the mode and owner of its `original`. Blocks on the disk."""
    with opened() as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
        found = original or os.fstat(file.fileno())
    owner, group = owner_of(found)
    return Member(size=size, sha256=digest, mode=found.st_mode & 0o777, owner=owner, group=group)


def owner_of(found: os.stat_result) -> tuple[str, str]:
    """Return the names of a file's user and group, "" for one without a name."""
    owner = group = ""
    with contextlib.suppress(KeyError):
        owner = pwd.getpwuid(found.st_uid).pw_name
    with contextlib.suppress(KeyError):
        group = grp.getgrgid(found.st_gid).gr_name
    return owner, group


def pack(target: Path, manifest: BackupManifest, files: Mapping[str, Opener], *, passphrase: str) -> None:
    """Write the archive durably. `files` are the manifest's members by their names. Raises OSError."""
    listed = manifest.model_dump_json(indent=1).encode()
    with open(target, "xb", opener=_privately) as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
            _add(tar, _MANIFEST, io.BytesIO(listed))
            _add(tar, _PROOF, io.BytesIO(_proof(listed, passphrase, os.urandom(_SALT_BYTES))))
            for name, opened in files.items():
                with opened() as content:
                    _add(tar, name, content)
        file.flush()
        os.fsync(file.fileno())


def read_manifest(source: Path, *, passphrase: str) -> BackupManifest:
    """Read what a backup holds. Raises ConfigError when it is none or not authentic, StoreError when it is damaged."""
    with _opened(source) as tar:
        return _manifest(tar, source, passphrase)


def unpack(source: Path, into: Path, *, passphrase: str) -> BackupManifest:
    """Unpack a backup into an empty folder, and check every member against the authenticated manifest.

    Raises:
        ConfigError: it is no backup, one of a newer program, or not authentic.
        StoreError: it is damaged, or there is no room for it.
    """
    with _opened(source) as tar:
        manifest = _manifest(tar, source, passphrase)
        missing = set(manifest.members)
        while (entry := tar.next()) is not None:
            if entry.name not in missing or not entry.isfile():
                raise StoreError(f"{source.name} holds {entry.name!r}, which its manifest does not list so")
            if entry.size != manifest.members[entry.name].size:
                raise StoreError(f"{entry.name} in the backup is damaged: its size is wrong")
            missing.remove(entry.name)
            _unpack_member(tar, entry, manifest.members[entry.name], into)
    if missing:
        raise StoreError(f"{source.name} lacks {min(missing)}: the file is cut short or damaged")
    return manifest


def seal(files: Mapping[str, Opener], originals: Mapping[str, os.stat_result], passphrase: str) -> bytes:
    """Pack secrets and encrypt them. `originals`: the files of which these are copies."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, opened in files.items():
            with opened() as file:
                found = originals[name]
                owner, group = owner_of(found)
                _add(tar, name, io.BytesIO(file.read()), mode=found.st_mode & 0o777, owner=owner, group=group)
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    return _SEAL + salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, packed.getvalue(), _SEAL)


def unseal(sealed: bytes, passphrase: str) -> dict[str, Secret]:
    """Return the secrets by their names. Raises ConfigError for a wrong passphrase."""
    if not sealed.startswith(_SEAL):
        raise ConfigError("the secrets of this backup are sealed in a way that this program does not know")
    body = sealed[len(_SEAL) :]
    salt, nonce = body[:_SALT_BYTES], body[_SALT_BYTES : _SALT_BYTES + _NONCE_BYTES]
    try:
        plain = AESGCM(_key(passphrase, salt)).decrypt(nonce, body[_SALT_BYTES + _NONCE_BYTES :], _SEAL)
    except InvalidTag as error:
        raise ConfigError("the passphrase is wrong for this backup") from error
    found: dict[str, Secret] = {}
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        for entry in tar:
            _expect_plain(entry.name)
            content = tar.extractfile(entry)
            data = b"" if content is None else content.read(_LARGEST_SECRETS)
            found[entry.name] = Secret(data, entry.mode & 0o777, entry.uname, entry.gname)
    return found


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[tarfile.TarFile]:
    if not source.is_file():
        raise ConfigError(f"there is no file {source}")
    try:
        with _Unzipped(source) as unzipped, _Archive(unzipped) as tar:
            yield tar
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "the file is no backup, or is cut short or damaged"
        raise StoreError(f"{source.name} cannot be read: {reason}") from error


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(passphrase.encode())


def _add(
    tar: tarfile.TarFile, name: str, content: IO[bytes], *, mode: int = 0o640, owner: str = "", group: str = ""
) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.uname, entry.gname = content.seek(0, io.SEEK_END), mode, owner, group
    content.seek(0)
    tar.addfile(entry, content)


def _proof(listed: bytes, passphrase: str, salt: bytes) -> bytes:
    """Return the member that proves that whoever wrote these bytes of a manifest knew the passphrase."""
    head = _PROOF_MARK + salt
    return head + hmac.digest(_key(passphrase, salt), head + listed, "sha256")


def _next_member(tar: tarfile.TarFile, name: str, largest: int) -> bytes | None:
    """Read the next member of the archive; None unless it is a file of this name that is not too large."""
    entry = tar.next()
    if entry is None or entry.name != name or not entry.isreg() or entry.size > largest:
        return None
    content = tar.extractfile(entry)
    return None if content is None else content.read(entry.size)


def _manifest(tar: tarfile.TarFile, source: Path, passphrase: str) -> BackupManifest:
    listed = _next_member(tar, _MANIFEST, _LARGEST_MANIFEST)
    if listed is None:
        raise ConfigError(f"{source.name} is not a backup of a gateway")
    proof = _next_member(tar, _PROOF, 1024)
    if proof is None or not proof.startswith(_PROOF_MARK):
        raise ConfigError(
            f"{source.name} does not prove that it was made with the passphrase, so anybody may have changed it:"
            " restore another backup, or this one with the release that made it if nobody else could write where it lay"
        )
    salt = proof[len(_PROOF_MARK) :][:_SALT_BYTES]
    if not hmac.compare_digest(proof, _proof(listed, passphrase, salt)):
        raise ConfigError(
            "the passphrase is wrong for this backup, or somebody changed it without the passphrase: type it again, or"
            " restore another backup"
        )
    try:
        manifest = BackupManifest.model_validate_json(listed)
    except ValidationError as error:
        raise ConfigError(f"{source.name} was made by a newer program, or is not a backup of a gateway") from error
    if _DATED.fullmatch(source.name) and source.name != usual_name(manifest.made_at):
        raise ConfigError(
            f"{source.name} is the backup of {manifest.made_at[:19]} UTC under another one's name: somebody put it in"
            " its place; to restore it all the same, rename it first"
        )
    for name in manifest.members:
        _expect_plain(name)
    return manifest


def _expect_plain(name: str) -> None:
    """Refuse a name that would leave the folder it is unpacked into."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise StoreError(f"the backup names a file {name!r}, which no backup does")


def _unpack_member(tar: tarfile.TarFile, entry: tarfile.TarInfo, member: Member, into: Path) -> None:
    content, path = tar.extractfile(entry), into / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    if content is not None:
        with open(path, "xb", opener=_privately) as file:
            while piece := content.read(_PIECE):
                digest.update(piece)
                file.write(piece)
    if digest.hexdigest() != member.sha256:
        raise StoreError(f"{entry.name} in the backup is damaged: its check sum is wrong")
