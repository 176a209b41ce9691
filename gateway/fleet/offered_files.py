"""Files that commands ask for: a support bundle, a clip, a proof package; made here, and fetched in parts.

Whoever asked fetches a part at a time, as fast as the line allows; after a lost line it goes on with the next part.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.passages import CameraEvent
from gateway.fleet.signed_commands import Action, FileOffer, FleetCommand
from gateway.proof_package.of_events import ProofPackages
from gateway.recording import Recording
from gateway.runtime.clock import Clock, iso_utc
from gateway.support.bundle import Bundle

MOST_BYTES: Final = 1_000_000_000
PART_BYTES: Final = 128 * 1024
_MOST_OFFERED = 8
_KEPT_SECONDS = 120.0
_LONGEST_SECONDS = 3600.0
_MAKING_SECONDS = 60.0
_GONE = "the file is not offered any more: command it again"

State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file for the one who asked: its name for people, its content or its place on disk, and what it lacks."""

    name: str
    content: bytes | Path
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMaker:
    """The maker of files. `bundle` makes a support bundle; `proofs` returns the maker of proof packages."""

    bundle: Callable[[], Awaitable[Bundle]]
    recording: Recording
    proofs: Callable[[], ProofPackages]

    async def make(self, command: FleetCommand, account: str) -> MadeFile:
        """Make the file that an account asks for.

        Raises CommandRefused, NotFoundError, CameraUnavailable, StoreError.
        """
        try:
            async with asyncio.timeout(_MAKING_SECONDS):
                if command.action is Action.CLIP:
                    return await self._clip(command)
                if command.action is Action.PROOF:
                    path = await self.proofs().of_event(command.event, by=account)
                    return MadeFile(path.name, path)
                made = await self.bundle()
                return MadeFile(made.name, made.content)
        except TimeoutError as error:
            raise CommandRefused("the file is still being made: command it again in a minute") from error

    async def _clip(self, command: FleetCommand) -> MadeFile:
        begin, end = command.span()
        footage = CameraEvent.of_span(command.camera, begin, end)
        path = await self.recording.clip(footage)
        gaps = (await self.recording.missing((footage,)))[footage.id]
        name = f"camera-{command.camera}-{iso_utc(begin)[:19].replace(':', '')}Z.mp4"
        return MadeFile(name, path, tuple(f"{iso_utc(gap.begin)} {gap.why}" for gap in gaps))


@dataclass(slots=True)
class _Offered:
    """A file on offer. `state` tells whether the file on disk is still the same."""

    action: Action
    content: bytes | Path
    state: State | None
    offer: FileOffer
    since: float
    asked_at: float

    def is_over(self, now: float) -> bool:
        return now - self.asked_at > _KEPT_SECONDS or now - self.since > _LONGEST_SECONDS


@dataclass(kw_only=True, eq=False)
class OfferedFiles:
    """The files on offer, by the command that asked. One is kept for two minutes after its last part was asked for."""

    clock: Clock
    _offered: dict[str, _Offered] = field(default_factory=dict, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def offer(self, command_id: str, action: Action, made: MadeFile) -> FileOffer:
        """Offer a file. Raises CommandRefused."""
        now = self.clock.monotonic()
        self._offered = {key: one for key, one in self._offered.items() if not one.is_over(now)}
        if len(self._offered) >= _MOST_OFFERED:
            raise CommandRefused(f"{_MOST_OFFERED} files are being fetched here: command it again in a few minutes")
        size, sha256, state = await asyncio.to_thread(_measured, made.content)
        if size > MOST_BYTES:
            raise CommandRefused(f"the file has {size:,} bytes; more than {MOST_BYTES:,} do not go over the fleet")
        offer = FileOffer(name=made.name, size=size, sha256=sha256, part_bytes=PART_BYTES, gaps=made.gaps)
        self._offered[command_id] = _Offered(action, made.content, state, offer, since=now, asked_at=now)
        return offer

    def action_of(self, command_id: str) -> Action:
        """Return the action that asked for the file of this command. Raises NotFoundError."""
        return self._kept(command_id).action

    async def part(self, command_id: str, number: int) -> bytes:
        """Return a part of the file; parts count from 0. Raises NotFoundError, CommandRefused."""
        kept = self._kept(command_id)
        if number >= kept.offer.parts:
            raise CommandRefused(f"the file has {kept.offer.parts} parts")
        kept.asked_at = self.clock.monotonic()
        async with self._reading:
            return await asyncio.to_thread(_read, kept.content, number * PART_BYTES, kept.state)

    def _kept(self, command_id: str) -> _Offered:
        found = self._offered.get(command_id)
        if found is None or found.is_over(self.clock.monotonic()):
            raise NotFoundError(_GONE)
        return found


def _measured(content: bytes | Path) -> tuple[int, str, State | None]:
    """Return size, SHA-256 and state of a content. Raises CommandRefused."""
    if isinstance(content, bytes):
        return len(content), hashlib.sha256(content).hexdigest(), None
    try:
        with content.open("rb") as file:
            state = _state(file)
            return state[1], hashlib.file_digest(file, "sha256").hexdigest(), state
    except OSError as error:
        raise CommandRefused(_GONE) from error


def _read(content: bytes | Path, begin: int, state: State | None) -> bytes:
    """Read a part. Raises CommandRefused."""
    if isinstance(content, bytes):
        return content[begin : begin + PART_BYTES]
    try:
        with content.open("rb") as file:
            if _state(file) != state:
                raise CommandRefused(_GONE)
            file.seek(begin)
            return file.read(PART_BYTES)
    except OSError as error:
        raise CommandRefused(_GONE) from error


def _state(file: BinaryIO) -> State:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns
