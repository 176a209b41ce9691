"""Backups of a running gateway to places that fail, made by the command as its timer runs it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from forked import done
from free_ports import free_port
from s3_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Store

_DAY = 86_400_000_000


class TriedBackups:
    """The nightly backup of one gateway, whose place each call names."""

    def __init__(self, folder: Path, *, data: Path, store: S3Store) -> None:
        """`folder` gets the site files that name the places; `store` may refuse."""
        self._folder = folder
        self._data = data
        self._store = store
        (folder / "secrets").mkdir()
        for name, text in (("store-key", ACCESS_KEY), ("store-secret", SECRET_KEY), ("phrase", "yard works")):
            (folder / "secrets" / name).touch(0o600)
            (folder / "secrets" / name).write_text(text)
        (folder / "good").mkdir()

    async def good(self) -> None:
        """Make one that succeeds."""
        self._store.denied = set()
        await self._made(f'target = "{self._folder / "good"}"', status=0)

    async def to_no_folder(self) -> None:
        """Make one to a disk that is not mounted."""
        await self._made(f'target = "{self._folder / "unplugged"}"', status=2)

    async def without_room(self, full: Path) -> None:
        """Make one to a full disk."""
        await self._made(f'target = "{full}"', status=1)

    async def refused(self) -> None:
        """Make one to a store that does not permit it."""
        self._store.denied = {"PUT"}
        await self._made(self._far(self._store.endpoint), status=2)

    async def unreachable(self) -> None:
        """Make one to a store that is not there."""
        await self._made(self._far(f"http://127.0.0.1:{free_port()}"), status=1)

    async def failing(self) -> None:
        """Make one with a site file that cannot be read."""
        await self._made('target = "here"', status=2)

    async def overdue(self) -> None:
        """Let the last good one be two days old: no test waits for that."""
        await self.good()
        note = self._data / "last-backup.json"
        aged = json.loads(note.read_text())
        aged["good_at"] -= 2 * _DAY
        note.write_text(json.dumps(aged))

    def _far(self, endpoint: str) -> str:
        return f"""target = "s3://{BUCKET}/north"
endpoint = "{endpoint}"
region = "{REGION}"
access_key = "store-key"
secret_key = "store-secret"
"""

    async def _made(self, section: str, *, status: int) -> None:
        site = self._folder / "site.toml"
        site.write_text(f'[site]\nname = "Bare"\n[backup]\n{section}\n')
        words = ("--site", site, "--data", self._data, "--passphrase-file", self._folder / "secrets" / "phrase")
        ended = await asyncio.to_thread(done, "gateway", "backup", *words)
        assert ended.returncode == status, ended.stderr
