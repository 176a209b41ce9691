"""Fetching a file of a gateway over the fleet: commanded once, read in parts, and kept only if it is whole."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets as randomness
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.fleet import operator
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused
from gateway.fleet.names import FleetName
from gateway.fleet.signed_commands import PART, Action, AskPart, FileOffer, Reply, signed
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff

_PATIENCE_SECONDS = 90.0


@dataclass(kw_only=True)
class Fetch:
    """The fetching of files of one gateway.

    Attributes:
        connect: opens a line to the fleet; called again when a line is lost.
        name: the gateway.
        seed: the NKey seed of the sender.
        told: takes each reply.
    """

    connect: Callable[[], AbstractAsyncContextManager[FleetLine]]
    name: FleetName
    seed: str
    told: Callable[[Reply], None]
    clock: Clock
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=10.0))

    async def run(self, action: Action, place: Path | None, **wanted: Any) -> tuple[Path, FileOffer]:
        """Command a file and fetch it to this place, or under its own name here; return the place.

        `wanted` are further arguments of `operator.command`. Raises GatewayError, GatewayUnreachable, ConfigError.
        """
        number = randomness.token_hex(16)
        offer = await self._offer(action, number, wanted)
        path = place or Path(Path(offer.name).name)
        early = path.with_name(f"{path.name}.part")
        try:
            with early.open("wb") as file:
                await self._read(number, offer, file)
                file.flush()
                os.fsync(file.fileno())
            if await asyncio.to_thread(_sha256, early) != offer.sha256:
                raise GatewayError("the file is not what the gateway offered: its checksum is another; fetch it again")
            early.replace(path)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
        finally:
            early.unlink(missing_ok=True)
        return path, offer

    async def _offer(self, action: Action, number: str, wanted: dict[str, Any]) -> FileOffer:
        last: Reply | None = None
        async with self.connect() as line:
            replies = operator.command(line, self.name, seed=self.seed, action=action, number=number, **wanted)
            async for last in replies:
                self.told(last)
        if last is None or last.file is None:
            raise GatewayError("the gateway did not reply" if last is None else last.detail or last.state)
        return last.file

    async def _read(self, number: str, offer: FileOffer, file: BinaryIO) -> None:
        """Write all parts, over as many lines as that takes. Raises GatewayError."""
        done, failures, since = 0, 0, self.clock.monotonic()
        while done < offer.parts:
            try:
                async with self.connect() as line:
                    while done < offer.parts:
                        file.write(await self._part(line, number, done))
                        done, failures, since = done + 1, 0, self.clock.monotonic()
            except (FleetAway, FleetRefused, GatewayUnreachable) as error:
                if self.clock.monotonic() - since > _PATIENCE_SECONDS:
                    raise GatewayError(f"part {done + 1} of {offer.parts} did not come: {error}") from error
                failures += 1
                await asyncio.sleep(self.backoff.wait(failures))

    async def _part(self, line: FleetLine, number: str, part: int) -> bytes:
        """Return a part. Raises FleetAway, FleetRefused; GatewayError if the gateway does not give it."""
        subject = self.name.commands
        body = AskPart(action="part", id=number, part=part).model_dump_json().encode()
        headers = signed(self.seed, subject, body)
        message = await line.asked(subject, body, refusal=f"{self.name} is away", headers=headers)
        if (message.headers or {}).get(PART) != str(part):
            raise GatewayError(Reply.model_validate_json(message.data).detail)
        data: bytes = message.data
        return data


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
