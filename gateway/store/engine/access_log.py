"""A second record of accounts, roles, keys, revoked grants and webhooks, in a file beside the database.

Rows salvaged from a damaged database may be out of date: an account that was removed, an earlier password or role, a
revoked key or grant, a webhook whose address now belongs to somebody else. Each such change is therefore also a line of
this file, on disk before the database has it. After a salvage the lines count. If they cannot be read, no salvaged row
gives access or sends events: accounts and webhooks are disabled, keys deleted, grants revoked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.faults import refused

log = structlog.get_logger(__name__)

_BEGIN: list[object] = ["begin", 1]
_MOST_GRANTS = 20_000
MOST_OUT_OF_DATE = 1000
_ACCOUNT = "username, password_hash, role, disabled, created_at, totp_secret, totp_step"
_KEY = "id, name, key_hash, permissions, created_at, expires_at"
Row = list[object]


@dataclass
class _Said:
    """The state that the lines add up to, by kind and name.

    `untidy`: many lines are out of date or the last one is incomplete, so that the file should be rewritten.
    """

    accounts: dict[str, Row] = field(default_factory=dict)
    roles: dict[str, Row] = field(default_factory=dict)
    keys: dict[str, Row] = field(default_factory=dict)
    grants: dict[str, Row] = field(default_factory=dict)
    webhooks: dict[str, Row] = field(default_factory=dict)
    taken: dict[str, Row] = field(default_factory=dict)
    untidy: bool = False

    def kinds(self) -> dict[str, dict[str, Row]]:
        """Return the rows of each kind, by name."""
        return {
            "account": self.accounts,
            "role": self.roles,
            "key": self.keys,
            "grant": self.grants,
            "webhook": self.webhooks,
            "taken": self.taken,
        }


class AccessLog:
    """The file. Its methods run in the writing thread, inside the transaction of the change that they record."""

    def __init__(self, *, path: Path) -> None:
        self._path = path

    def account(self, connection: sqlite3.Connection, username: str) -> None:
        """Record an account as it is in the transaction, or its removal.

        Raises StoreError if the line is not on disk; the transaction must then fail too.
        """
        rows = list(_accounts(connection, username))
        self._append(["account", username, rows[0][1] if rows else None])

    def role(self, connection: sqlite3.Connection, name: str) -> None:
        """Record a role as it is in the transaction, or its removal. Raises StoreError."""
        row = connection.execute("SELECT permissions FROM role WHERE name = ?", (name,)).fetchone()
        self._append(["role", name, list(row) if row else None])

    def key(self, connection: sqlite3.Connection, name: str) -> None:
        """Record a key as it is in the transaction, or its removal. Raises StoreError."""
        rows = list(_keys(connection, name))
        self._append(["key", name, rows[0][1] if rows else None])

    def grant_revoked(self, access_id: str) -> None:
        """Record that a grant was revoked. Raises StoreError."""
        self._append(["grant", access_id, []])

    def webhook(self, connection: sqlite3.Connection, webhook_id: str) -> None:
        """Record that a webhook exists or was removed. Raises StoreError."""
        there = connection.execute("SELECT 1 FROM webhook WHERE id = ?", (webhook_id,)).fetchone()
        self._append(["webhook", webhook_id, [] if there else None])

    def taken_over(self, username: str) -> None:
        """Record that an account of the site file was taken over: it is taken once. Raises StoreError."""
        self._append(["taken", username, []])

    def agree(self, connection: sqlite3.Connection) -> None:
        """Rewrite the file from a sound database at its opening, if they differ. Never raises OSError."""
        said = _Said(
            accounts=dict(_accounts(connection)),
            roles={name: [allowed] for name, allowed in connection.execute("SELECT name, permissions FROM role")},
            keys=dict(_keys(connection)),
            grants={access_id: [] for access_id in _revoked(connection)},
            webhooks={webhook_id: [] for (webhook_id,) in connection.execute("SELECT id FROM webhook")},
            taken={
                name: []
                for (name,) in connection.execute("SELECT username FROM site_file_account WHERE password_hash = ''")
            },
        )
        try:
            if self._read() != said:
                self._rewrite(said)
        except OSError as error:
            log.warning("access_log_not_written", error=error.strerror)  # a full disk must not stop lanes

    def mend(self, connection: sqlite3.Connection) -> str:
        """Correct a salvaged database by this file; if the file cannot be read, disable all access.

        Return a sentence about what was disabled, "" for nothing.
        """
        try:
            said = self._read()
        except OSError as error:
            log.error("access_log_unreadable", error=error.strerror)  # noqa: TRY400 (the sentence says it all)
            said = None
        if said is None:
            return _suspend(connection)
        for table in ("account", "recovery_code", "role", "api_key"):
            connection.execute(f"DELETE FROM {table}")
        for *account, codes in said.accounts.values():
            connection.execute(f"INSERT INTO account ({_ACCOUNT}) VALUES (?, ?, ?, ?, ?, ?, ?)", account)
            hashes = codes if isinstance(codes, list) else []
            connection.executemany(
                "INSERT INTO recovery_code VALUES (?, ?)", [(bytes.fromhex(one), account[0]) for one in hashes]
            )
        connection.executemany("INSERT INTO role VALUES (?, ?)", [(name, *row) for name, row in said.roles.items()])
        connection.executemany(
            f"INSERT INTO api_key ({_KEY}) VALUES (?, ?, ?, ?, ?, ?)",
            [(row[0], row[1], bytes.fromhex(str(row[2])), *row[3:]) for row in said.keys.values()],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO site_file_account VALUES (?, '')", [(name,) for name in said.taken]
        )
        connection.executemany(
            "UPDATE access_grant SET revoked_at = given_at, revoked_by = 'access.log'"
            " WHERE access_id = ? AND revoked_at IS NULL",
            [(access_id,) for access_id in said.grants],
        )
        for table, column in (("webhook", "id"), ("webhook_type", "webhook_id"), ("webhook_message", "webhook_id")):
            connection.execute(
                f"DELETE FROM {table} WHERE {column} NOT IN (SELECT value FROM json_each(?))",
                (json.dumps([*said.webhooks]),),
            )
        return ""

    def _append(self, line: list[object]) -> None:
        """Append one line; it is on disk when this returns. If it raises StoreError, the file is unchanged."""
        try:
            new = not self._path.exists()
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                before = file.tell()
                try:
                    file.write(_written(line))
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), before)
                    raise
            if new:  # a file without its first line counts as unreadable until `agree` rewrites it
                sync_folder(self._path.parent)
        except OSError as error:
            raise refused(self._path, error, "nothing was recorded") from error

    def _rewrite(self, said: _Said) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        lines: list[list[object]] = [_BEGIN]
        lines += ([kind, name, row] for kind, rows in said.kinds().items() for name, row in rows.items())
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(map(_written, lines))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        sync_folder(self._path.parent)

    def _read(self) -> _Said | None:
        """Read the file; None if it is missing or if a complete line is damaged. Raises OSError."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        *lines, torn = raw.split(b"\n")  # a last line without its end was never acknowledged, and does not count
        said = _Said()
        kinds = said.kinds()
        try:
            if not lines or _line(lines[0]) != _BEGIN:
                return None
            for line in lines[1:]:
                kind, name, row = _line(line)
                known = kinds[str(kind)]
                known.pop(str(name), None)
                if isinstance(row, list):
                    known[str(name)] = row
        except (ValueError, KeyError):
            return None
        lasting = sum(len(rows) for rows in said.kinds().values())
        said.untidy = bool(torn) or len(lines) > lasting + MOST_OUT_OF_DATE
        return said


def _written(line: list[object]) -> bytes:
    text = json.dumps(line, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _line(raw: bytes) -> list[object]:
    check, _, text = raw.partition(b" ")
    if int(check, 16) != zlib.crc32(text):
        raise ValueError("another line was written here")
    line = json.loads(text)
    if not isinstance(line, list):
        raise ValueError("not a line of this file")  # noqa: TRY004 (its reader looks for one kind of error)
    return line


def _accounts(connection: sqlite3.Connection, username: str | None = None) -> Iterator[tuple[str, Row]]:
    found = connection.execute(f"SELECT {_ACCOUNT} FROM account WHERE ?1 IS NULL OR username = ?1", (username,))
    for row in found.fetchall():
        codes = connection.execute(
            "SELECT lower(hex(code_hash)) FROM recovery_code WHERE username = ? ORDER BY code_hash", (row[0],)
        )
        yield row[0], [*row, [code for (code,) in codes]]


def _keys(connection: sqlite3.Connection, name: str | None = None) -> Iterator[tuple[str, Row]]:
    for row in connection.execute(f"SELECT {_KEY} FROM api_key WHERE ?1 IS NULL OR name = ?1", (name,)):
        yield row[1], [row[0], row[1], row[2].hex(), *row[3:]]


def _revoked(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(
        "SELECT access_id FROM access_grant WHERE revoked_at IS NOT NULL ORDER BY revoked_at DESC LIMIT ?",
        (_MOST_GRANTS,),
    )
    return [access_id for (access_id,) in found]


def _suspend(connection: sqlite3.Connection) -> str:
    """Disable accounts and webhooks, delete keys and revoke grants, because salvaged rows may be out of date.

    Return a sentence about it, "" for nothing done.
    """
    counts = (
        connection.execute("UPDATE account SET disabled = 1 WHERE disabled = 0").rowcount,
        connection.execute("DELETE FROM api_key").rowcount,
        connection.execute(
            "UPDATE access_grant SET revoked_at = given_at, revoked_by = 'salvage' WHERE revoked_at IS NULL"
        ).rowcount,
    )
    silenced = _silence(connection)
    if not any(counts):
        return silenced
    return (
        f"what was last said of who may come in cannot be read, so {counts[0]} accounts were disabled,"
        f" {counts[1]} keys removed and {counts[2]} grants taken back: enable or give anew those that are right"
        f"{'; ' if silenced else ''}{silenced}"
    )


def _silence(connection: sqlite3.Connection) -> str:
    """Disable webhooks, because salvaged rows may be out of date. Return a sentence about it, "" for nothing done."""
    count = connection.execute(
        "UPDATE webhook SET disabled = 'saved from a damaged database, where it may have been removed since'"
        " WHERE disabled = ''"
    ).rowcount
    return f"{count} webhooks were disabled, which may have been removed: enable those that are right" if count else ""
