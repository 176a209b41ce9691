"""Backups on an SFTP server whose host key is known beforehand."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import paramiko

from gateway.backup.destinations import SUFFIX, expect_same, sha256_of
from gateway.backup.faults import PlaceFailed, PlaceRefuses, PlaceUnreachable, fault_here
from gateway.domain.errors import ConfigError
from gateway.site.backup_section import SftpAddress

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # a fault is told once, in the sentence of its error

_PIECE = 1024 * 1024
_CONNECT_SECONDS = 30.0
_KEEPALIVE_SECONDS = 15
_DRAFT = ".new"
_SIGNED_BY = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""The algorithms by which a host key signs, where they are not called as the key is (RFC 8332)."""
_PRIVATE_KEYS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)


class SftpPlace:
    """A folder on an SFTP server. Each call connects anew.

    A draft has a dot before its name and `.new` after it, so what breaks off never counts, and the next upload
    removes it.
    """

    def __init__(
        self,
        address: SftpAddress,
        *,
        host_key: str,
        password: str | None,
        key: str | None,
        silent_seconds: float = 60.0,
    ) -> None:
        """`silent_seconds`: how long the server may be silent."""
        self._address = address
        self._called = f"SFTP server {address.host}"
        self._folder = address.path
        self._host_key = host_key.split()[:2]
        self._password = password
        self._key = None if key is None else _private_key(key)
        self._silent = silent_seconds

    def put(self, file: Path, name: str) -> None:
        """Upload a file, compare it, and give it its name."""
        sent = (file.stat().st_size, sha256_of(file))
        draft, final = str(self._folder / f".{name}{_DRAFT}"), str(self._folder / name)
        with self._connected() as client:
            for found in client.listdir(str(self._folder)):
                if found.startswith(".") and found.endswith(SUFFIX + _DRAFT):
                    client.remove(str(self._folder / found))
            try:
                with file.open("rb") as source, client.open(draft, "wx") as target:
                    with suppress(OSError):  # a server without modes of files refuses
                        target.chmod(0o600)
                    target.set_pipelined(True)  # the library's own signature
                    while piece := source.read(_PIECE):
                        target.write(piece)
                expect_same(_read(client, draft, None), sent, self._called)
                _expect_free(client, final)
                client.rename(draft, final)
            except BaseException:  # whatever ends it: what is half there does not stay if it can go
                with suppress(paramiko.SSHException, OSError, EOFError):
                    client.remove(draft)
                raise

    def get(self, name: str, into: Path) -> None:
        """Download a file."""
        with self._connected() as client:
            _read(client, str(self._folder / name), into)

    def names(self) -> list[str]:
        """Return the names of the backups there, the oldest first."""
        with self._connected() as client:
            found = client.listdir(str(self._folder))
        return sorted(name for name in found if name.endswith(SUFFIX) and not name.startswith("."))

    def delete(self, name: str) -> None:
        """Delete a backup."""
        with self._connected() as client:
            client.remove(str(self._folder / name))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield a client of the library. Translates what goes wrong with it."""
        transport, client = self._reached(), None
        try:
            self._let_in(transport)
            client = paramiko.SFTPClient.from_transport(transport)
            client.get_channel().settimeout(self._silent)
            yield client
        except FileNotFoundError as error:
            raise PlaceRefuses(f"the {self._called} has no such folder or file: {self._folder}") from error
        except PermissionError as error:
            raise PlaceRefuses(f"the {self._called} does not let its user write in {self._folder}") from error
        except TimeoutError as error:
            raise PlaceUnreachable(
                f"the {self._called} does not answer in time: check the network and the server"
            ) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            if not isinstance(error, OSError) or client is None or client.get_channel().closed:
                raise PlaceUnreachable(
                    f"the line to the {self._called} broke: check the network and the server"
                ) from error
            if error.errno is not None:
                raise fault_here(error) from error
            raise PlaceFailed(f"the {self._called} failed: check whether its disk is full") from error
        finally:
            transport.close()

    def _reached(self) -> Any:
        """Connect, without a word of secrets yet."""
        try:
            line = socket.create_connection((self._address.host, self._address.port), timeout=_CONNECT_SECONDS)
        except OSError as error:
            why = error.strerror or "it does not answer in time"
            raise PlaceUnreachable(f"the {self._called} cannot be reached: {why}") from error
        transport = paramiko.Transport(line)
        transport.banner_timeout = transport.auth_timeout = transport.channel_timeout = _CONNECT_SECONDS
        transport.set_keepalive(_KEEPALIVE_SECONDS)
        return transport

    def _let_in(self, transport: Any) -> None:
        """Prove that the server is the one that is meant, then sign in."""
        kind, content = self._host_key
        try:
            transport.get_security_options().key_types = _SIGNED_BY.get(kind, (kind,))
            transport.start_client(timeout=_CONNECT_SECONDS)
            is_known = transport.get_remote_server_key().asbytes() == base64.b64decode(content)
        except paramiko.IncompatiblePeer as error:
            raise self._another_host_key() from error
        if not is_known:
            raise self._another_host_key()
        try:
            if self._key is not None:
                transport.auth_publickey(self._address.user, self._key)
            else:
                transport.auth_password(self._address.user, self._password)
        except paramiko.AuthenticationException as error:
            raise self._refused() from error
        if not transport.is_authenticated():  # it wants more than one proof
            raise self._refused()

    def _refused(self) -> PlaceRefuses:
        return PlaceRefuses(f"the {self._called} refused user {self._address.user}: check the password or key")

    def _another_host_key(self) -> PlaceRefuses:
        return PlaceRefuses(
            f"the {self._called} shows another host key than [backup] host_key: ask whoever runs it whether its key"
            " was changed, and put the new one there only then"
        )


def _read(client: Any, path: str, into: Path | None) -> tuple[int, str]:
    """Read a file there, into a file here if one is named; return its size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with (
        client.open(path, "rb") as source,
        (Path(os.devnull) if into is None else into).open("wb" if into is None else "xb") as target,
    ):
        while piece := source.read(_PIECE):
            size += len(piece)
            digest.update(piece)
            target.write(piece)
    return size, digest.hexdigest()


def _expect_free(client: Any, path: str) -> None:
    try:
        client.stat(path)
    except FileNotFoundError:
        return
    raise ConfigError(f"{path} is there already; name another file")


def _private_key(text: str) -> Any:
    for kind in _PRIVATE_KEYS:
        with suppress(paramiko.SSHException, ValueError):  # of another kind
            return kind.from_private_key(io.StringIO(text))
    raise PlaceRefuses(
        "the private key for the SFTP server is none, or has a passphrase: make one without by ssh-keygen"
    )
