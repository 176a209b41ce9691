"""The site's own accounts and their roles. A change to an account ends its sessions in the same commit.

The secrets of authenticators are encrypted (AES-GCM), so that a copy of the database gives nobody a second factor. The
key is a separate file in the data folder, mode 0600, made when it is first needed. A secret encrypted for one account
cannot be decrypted for another.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

import structlog

from gateway.domain.accounts import AccountChangeRefused
from gateway.domain.errors import NotFoundError, StoreError
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.access_log import AccessLog
from gateway.store.engine.database import Database
from gateway.store.engine.faults import refused
from gateway.texts import text

log = structlog.get_logger(__name__)

UNREADABLE = "?"
"""Stands for a secret that cannot be decrypted: the account has a second factor, and no code is ever right."""

_KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """An account with the permissions of its role.

    Attributes:
        created_at: wall micros UTC.
        totp_secret: the authenticator's secret in base32; "" without a second factor, UNREADABLE if it cannot be
            decrypted.
        codes_left: the number of unused recovery codes.
    """

    username: str
    password_hash: str = field(repr=False)
    role: str
    permissions: frozenset[str]
    disabled: bool
    created_at: int
    totp_secret: str = field(repr=False, default="")
    codes_left: int = 0


@dataclass(frozen=True, slots=True)
class FoundAccount:
    """An account of an older site file, for `Accounts.take_over`."""

    username: str
    password_hash: str = field(repr=False)
    permissions: frozenset[str]


class SecondFactorSeal:
    """Cipher of the secrets. Blocks on the disk until the key is in memory."""

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._key: bytes | None = None

    def seal(self, secret: str, username: str) -> str:
        """Encrypt an account's secret; "" stays "". Raises StoreError if a new key cannot be written to the disk."""
        if not secret:
            return ""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # lanes start faster without it

        nonce = secrets.token_bytes(_NONCE_BYTES)
        return (nonce + AESGCM(self._known() or self._made()).encrypt(nonce, secret.encode(), username.encode())).hex()

    def open(self, sealed: str, username: str) -> str:
        """Decrypt an account's secret; UNREADABLE if the key is missing or wrong, or the encrypted text was changed."""
        if not sealed:
            return ""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # lanes start faster without it
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # likewise

        key = self._known()
        try:
            raw = bytes.fromhex(sealed)
            if key is not None:
                return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], username.encode()).decode()
        except (InvalidTag, ValueError):  # logged below, as a missing key is
            pass
        log.error("second_factor_unreadable", username=username, key=self._path.name)
        return UNREADABLE

    def _known(self) -> bytes | None:
        if self._key is None:
            try:
                key = self._path.read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                log.error("second_factor_key_unreadable", error=error.strerror)  # noqa: TRY400 (the sentence says it all)
                return None
            self._key = key if len(key) == _KEY_BYTES else None
        return self._key

    def _made(self) -> bytes:
        """Make a new key and return it once it is on disk."""
        key, draft = secrets.token_bytes(_KEY_BYTES), self._path.with_name(f"{self._path.name}.new")
        try:
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():  # an unusable key is kept, because somebody may be able to repair it
                self._path.rename(self._path.with_name(f"{self._path.name}.unusable"))
            draft.rename(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _no_place(self._path, error) from error
        self._key = key
        return key


def _no_place(path: Path, error: OSError) -> StoreError:
    return refused(path, error, "no second factor can be kept")


class Accounts:
    """Accounts and roles. Methods that name an account raise NotFoundError when there is none."""

    def __init__(self, *, database: Database, seal: SecondFactorSeal, log: AccessLog) -> None:
        self._database = database
        self._seal = seal
        self._log = log

    async def all(self) -> tuple[StoredAccount, ...]:
        """Return every account, by name."""
        return await self._database.read(
            lambda connection: tuple(
                StoredAccount(
                    username=row[0],
                    password_hash=row[1],
                    role=row[2],
                    permissions=frozenset(json.loads(row[3] or "[]")),
                    disabled=bool(row[4]),
                    created_at=row[5],
                    totp_secret=self._seal.open(row[6], row[0]),
                    codes_left=row[7],
                )
                for row in connection.execute(
                    "SELECT username, password_hash, role, permissions, disabled, created_at, totp_secret,"
                    " (SELECT count(*) FROM recovery_code WHERE recovery_code.username = account.username)"
                    " FROM account LEFT JOIN role ON role.name = account.role ORDER BY username"
                )
            )
        )

    async def add(self, username: str, *, password_hash: str, role: str, now: int) -> None:
        """Add an account. Raises AccountRefused when the name is taken, NotFoundError for an unknown role."""

        def job(connection: sqlite3.Connection) -> None:
            _known_role(connection, role)
            if connection.execute("SELECT 1 FROM account WHERE username = ?", (username,)).fetchone():
                raise AccountChangeRefused(text("refused.account_exists", who=username))
            connection.execute(
                "INSERT INTO account (username, password_hash, role, disabled, created_at) VALUES (?, ?, ?, 0, ?)",
                (username, password_hash, role, now),
            )
            _end_sessions(connection, username)  # an account of central with this name gives way to this one
            _end_links(connection, username)
            self._log.account(connection, username)

        await self._database.write(job)

    async def set_password(self, username: str, password_hash: str) -> None:
        """Set an account's password by its hash, and end its sessions."""
        await self._change(username, "password_hash = ?", password_hash)

    async def set_role(self, username: str, role: str) -> None:
        """Set an account's role, and end its sessions. Raises NotFoundError also for an unknown role."""

        def job(connection: sqlite3.Connection) -> None:
            _known_role(connection, role)
            _update(connection, username, "role = ?", role)
            self._log.account(connection, username)

        await self._database.write(job)

    async def set_disabled(self, username: str, *, disabled: bool) -> None:
        """Allow or forbid sign-ins, and end the account's sessions; forbidding also ends the links that it made."""

        def job(connection: sqlite3.Connection) -> None:
            _update(connection, username, "disabled = ?", int(disabled))
            if disabled:
                _end_links(connection, username)
            self._log.account(connection, username)

        await self._database.write(job)

    async def set_second_factor(self, username: str, secret: str, *, step: int, codes: Iterable[bytes]) -> None:
        """Set or remove a second factor, replace the recovery codes, and end the account's sessions.

        Args:
            username: the account.
            secret: the authenticator's secret in base32, "" to remove the second factor.
            step: the 30-second time step of the code that proved the authenticator; that code is not accepted again.
            codes: the hashes of the new recovery codes.
        """
        hashes = tuple(codes)

        def job(connection: sqlite3.Connection) -> None:
            _update(connection, username, "totp_secret = ?, totp_step = ?", self._seal.seal(secret, username), step)
            _put_codes(connection, username, hashes)
            self._log.account(connection, username)

        await self._database.write(job)

    async def set_recovery_codes(self, username: str, codes: Iterable[bytes]) -> None:
        """Replace an account's recovery codes by their hashes. Raises AccountRefused without a second factor."""
        hashes = tuple(codes)

        def job(connection: sqlite3.Connection) -> None:
            row = connection.execute("SELECT totp_secret FROM account WHERE username = ?", (username,)).fetchone()
            if row is None:
                raise NotFoundError(text("refused.account_unknown", who=username))
            if not row[0]:
                raise AccountChangeRefused(text("refused.no_second_factor", who=username))
            _put_codes(connection, username, hashes)
            self._log.account(connection, username)

        await self._database.write(job)

    async def use_step(self, username: str, secret: str, step: int) -> bool:
        """Record that the code of a 30-second time step was used; return whether it may count.

        False if a code of this step or a later one was used before, or if `secret` is no longer the account's.
        """

        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute("SELECT totp_secret FROM account WHERE username = ?", (username,)).fetchone()
            if row is None or not row[0] or self._seal.open(row[0], username) != secret:
                return False
            changed = connection.execute(
                "UPDATE account SET totp_step = ? WHERE username = ? AND totp_step < ?", (step, username, step)
            )
            return changed.rowcount == 1

        return await self._database.write(job)

    async def use_recovery_code(self, username: str, code_hash: bytes) -> bool:
        """Use up a recovery code; return False if the account has no such code."""

        def job(connection: sqlite3.Connection) -> bool:
            gone = connection.execute(
                "DELETE FROM recovery_code WHERE code_hash = ? AND username = ?", (code_hash, username)
            )
            if gone.rowcount:
                self._log.account(connection, username)
            return gone.rowcount == 1

        return await self._database.write(job)

    async def remove(self, username: str) -> None:
        """Remove an account, its sessions and the links that it made."""

        def job(connection: sqlite3.Connection) -> None:
            if connection.execute("DELETE FROM account WHERE username = ?", (username,)).rowcount == 0:
                raise NotFoundError(text("refused.account_unknown", who=username))
            _put_codes(connection, username, ())
            _end_sessions(connection, username)
            _end_links(connection, username)
            self._log.account(connection, username)

        await self._database.write(job)

    async def roles(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Return every role with its permissions, by name."""
        return await self._database.read(
            lambda connection: tuple(
                (name, frozenset(json.loads(permissions)))
                for name, permissions in connection.execute("SELECT name, permissions FROM role ORDER BY name")
            )
        )

    async def put_role(self, name: str, permissions: frozenset[str]) -> tuple[str, ...]:
        """Add or change a role, and end the sessions of all accounts that have it. Return those accounts."""

        def job(connection: sqlite3.Connection) -> tuple[str, ...]:
            connection.execute(
                "INSERT INTO role VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET permissions = excluded.permissions",
                (name, json.dumps(sorted(permissions))),
            )
            holders = _holders(connection, name)
            for username in holders:
                _end_sessions(connection, username)
            self._log.role(connection, name)
            return holders

        return await self._database.write(job)

    async def remove_role(self, name: str) -> None:
        """Remove a role. Raises NotFoundError for an unknown role, AccountRefused while an account has it."""

        def job(connection: sqlite3.Connection) -> None:
            if holders := _holders(connection, name):
                raise AccountChangeRefused(f"{', '.join(holders)} have the role '{name}'; give them another one first")
            if connection.execute("DELETE FROM role WHERE name = ?", (name,)).rowcount == 0:
                raise NotFoundError(text("refused.role_unknown", role=name))
            self._log.role(connection, name)

        await self._database.write(job)

    async def of_site_file(self) -> dict[str, str]:
        """Return the password hashes of the site file's accounts by name; "" for those that were taken over.

        Earlier releases stored the hashes; the accounts themselves stayed in the file.
        """
        return await self._database.read(
            lambda connection: dict(connection.execute("SELECT username, password_hash FROM site_file_account"))
        )

    async def take_over(self, found: Iterable[FoundAccount], *, now: int) -> tuple[str, ...]:
        """Take over accounts of an older site file, each name once; return the names that were added.

        An account with a name of the register stays as it is there, and sessions of the file's account end. Each of the
        others gets a role with its permissions, and keeps its sessions if its password is still the one that
        `of_site_file` had.
        """

        def job(connection: sqlite3.Connection) -> tuple[str, ...]:
            return tuple(one.username for one in found if self._is_added(connection, one, now))

        return await self._database.write(job)

    def _is_added(self, connection: sqlite3.Connection, found: FoundAccount, now: int) -> bool:
        name, password_hash = found.username, found.password_hash
        known = connection.execute("SELECT password_hash FROM site_file_account WHERE username = ?", (name,)).fetchone()
        if known == ("",):
            return False
        connection.execute("INSERT OR REPLACE INTO site_file_account VALUES (?, '')", (name,))
        self._log.taken_over(name)
        if connection.execute("SELECT 1 FROM account WHERE username = ?", (name,)).fetchone():
            _end_sessions(connection, name)
            _end_links(connection, name)
            return False
        if known != (password_hash,):
            _end_sessions(connection, name)
        connection.execute(
            "INSERT INTO account (username, password_hash, role, disabled, created_at) VALUES (?, ?, ?, 0, ?)",
            (name, password_hash, self._role_with(connection, found), now),
        )
        self._log.account(connection, name)
        return True

    def _role_with(self, connection: sqlite3.Connection, found: FoundAccount) -> str:
        """Return a role that has exactly the account's permissions; one of the account's name is made if none has."""
        roles: dict[str, frozenset[str]] = {
            name: frozenset(json.loads(allowed))
            for name, allowed in connection.execute("SELECT name, permissions FROM role ORDER BY name")
        }
        for name, allowed in roles.items():
            if allowed == found.permissions:
                return name
        names = chain((found.username,), (f"{found.username} {number}" for number in count(2)))
        new = next(name for name in names if name not in roles)
        connection.execute("INSERT INTO role VALUES (?, ?)", (new, json.dumps(sorted(found.permissions))))
        self._log.role(connection, new)
        return new

    async def _change(self, username: str, assignment: str, value: str | int) -> None:
        def job(connection: sqlite3.Connection) -> None:
            _update(connection, username, assignment, value)
            self._log.account(connection, username)

        await self._database.write(job)


def _update(connection: sqlite3.Connection, username: str, assignment: str, *values: str | int) -> None:
    changed = connection.execute(f"UPDATE account SET {assignment} WHERE username = ?", (*values, username))
    if changed.rowcount == 0:
        raise NotFoundError(text("refused.account_unknown", who=username))
    _end_sessions(connection, username)


def _end_sessions(connection: sqlite3.Connection, username: str) -> None:
    connection.execute("DELETE FROM session WHERE username = ?", (username,))


def _end_links(connection: sqlite3.Connection, username: str) -> None:
    """End the links to evidence that an account made: a later account of this name is another person's."""
    connection.execute("DELETE FROM evidence_link WHERE username = ?", (username,))


def _put_codes(connection: sqlite3.Connection, username: str, hashes: tuple[bytes, ...]) -> None:
    connection.execute("DELETE FROM recovery_code WHERE username = ?", (username,))
    connection.executemany("INSERT INTO recovery_code VALUES (?, ?)", [(one, username) for one in hashes])


def _known_role(connection: sqlite3.Connection, role: str) -> None:
    if connection.execute("SELECT 1 FROM role WHERE name = ?", (role,)).fetchone() is None:
        known = ", ".join(row[0] for row in connection.execute("SELECT name FROM role ORDER BY name"))
        raise NotFoundError(text("refused.role_unknown_among", role=role, roles=known))


def _holders(connection: sqlite3.Connection, role: str) -> tuple[str, ...]:
    found = connection.execute("SELECT username FROM account WHERE role = ? ORDER BY username", (role,))
    return tuple(row[0] for row in found)
