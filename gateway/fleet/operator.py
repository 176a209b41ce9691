"""Work of those who run a fleet: prepare a server, see how each gateway is, and command one.

A file of a gateway is commanded once, read in parts, and kept only if it is whole. A change of many sites' files goes
in steps: a few gateways first, and on only while all of them are well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets as randomness
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.fleet.heartbeat import AWAY_SECONDS, HeartbeatValue
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused
from gateway.fleet.names import AREAS_BUCKET, AREAS_STREAM, BUCKET, BUCKET_STREAM, STREAM, STREAM_SUBJECTS, FleetName
from gateway.fleet.signed_commands import (
    ASK_NONCE,
    PART,
    Action,
    AskPart,
    CommandReply,
    FileOffer,
    FleetCommand,
    Nonce,
    SiteEdit,
    signed,
)
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff

log = structlog.get_logger(__name__)

DUPLICATE_SECONDS: Final = 600
_NANOSECONDS: Final = 1_000_000_000
_DAY: Final = 86_400
_REPLY_SECONDS: Final = 130.0
Told = TypeVar("Told", Nonce, CommandReply)
_EXISTS_OTHERWISE = 10058

_PATIENCE_SECONDS = 90.0

_EDITS = TypeAdapter(tuple[SiteEdit, ...])


@dataclass(frozen=True, slots=True)
class Seen:
    """A gateway as its last heartbeat tells. `at`: when the server took that (wall micros)."""

    name: str
    beat: HeartbeatValue
    at: int


async def prepare(line: FleetLine, *, days: int, replicas: int) -> None:
    """Make the stream of events and the buckets, or change them to these settings. Raises FleetAway, GatewayError."""
    kept = {"storage": "file", "num_replicas": replicas, "allow_direct": True}
    await _put_stream(
        line,
        {
            "name": STREAM,
            "subjects": [STREAM_SUBJECTS],
            "max_age": days * _DAY * _NANOSECONDS,
            "duplicate_window": DUPLICATE_SECONDS * _NANOSECONDS,
            "discard": "old",
            **kept,
        },
    )
    for bucket, stream in ((BUCKET, BUCKET_STREAM), (AREAS_BUCKET, AREAS_STREAM)):
        await _put_stream(
            line,
            {
                "name": stream,
                "subjects": [f"$KV.{bucket}.>"],
                "max_msgs_per_subject": 1,
                "allow_rollup_hdrs": True,
                "deny_delete": True,
                "discard": "new",
                **kept,
            },
        )


async def gateways(line: FleetLine) -> AsyncIterator[Seen]:
    """Yield every gateway that has ever sent a heartbeat. Raises FleetAway, FleetRefused."""
    begin = f"$KV.{BUCKET}."
    async for kept in line.last_of_each(BUCKET_STREAM, f"{begin}>"):
        try:
            yield Seen(kept.subject.removeprefix(begin), HeartbeatValue.model_validate_json(kept.data), kept.at)
        except ValidationError:
            log.warning("heartbeat_unreadable", key=kept.subject)


async def command(
    line: FleetLine,
    name: FleetName,
    *,
    seed: str,
    action: Action,
    lane: str = "",
    order: Literal["hold_open", "lock_down", "normal"] | None = "hold_open",
    reason: str = "",
    edits: Sequence[SiteEdit] = (),
    camera: int = 0,
    begin: datetime | None = None,
    end: datetime | None = None,
    event: int = 0,
    undoes: str | None = None,
    seal: str = "",
    number: str = "",
    seconds: float = 10.0,
) -> AsyncIterator[CommandReply]:
    """Command a gateway; yield its replies up to the final one.

    Args:
        line: a line to the fleet.
        name: the gateway.
        seed: the NKey seed of the sender.
        action: the command.
        lane: the lane, for commands to a gate.
        order: the standing order of `hold`; None to follow the schedule again.
        reason: the reason of a standing order.
        edits: the changes of the site file, for `edit`.
        camera: the camera of a `clip`.
        begin: its beginning.
        end: its end, ten minutes later at most.
        event: the event of a `proof`.
        undoes: the id of the `edit` that this one takes back.
        seal: the seal of its reply.
        number: the command's id, "" for a new one.
        seconds: the command's life; a gateway that gets it later refuses.

    Raises:
        GatewayUnreachable: the gateway is away; nothing was sent.
        FleetAway, FleetRefused: the server's answer, or none. The outcome is unknown; the same `number` asks for it.
        ConfigError: the seed is none.
    """
    away = f"{name} is away: the command was not sent"
    try:
        answer = await line.asked(name.commands, ASK_NONCE, refusal=away)
    except FleetRefused as error:
        raise GatewayUnreachable(away) from error
    nonce = _answer(Nonce, answer.data, name).nonce
    body = (
        FleetCommand(
            id=number or randomness.token_hex(16),
            action=action,
            lane=lane,
            order=order,
            reason=reason,
            edits=tuple(edits),
            camera=camera,
            begin=begin,
            end=end,
            event=event,
            undoes=undoes,
            seal=seal,
            nonce=nonce,
            seconds=seconds,
        )
        .model_dump_json()
        .encode()
    )
    try:
        headers = signed(seed, name.commands, body)
    except ValueError as error:
        raise ConfigError(f"the key {error}") from error
    async for message in line.replies(name.commands, body, headers=headers, within=_REPLY_SECONDS):
        reply = _answer(CommandReply, message.data, name)
        yield reply
        if reply.final:
            return


def _answer(kind: type[Told], data: bytes, name: FleetName) -> Told:
    """Read a gateway's answer. Raises FleetRefused for one that is none."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise FleetRefused(f"what answers for {name} is no gateway, or one of another release") from error


async def _put_stream(line: FleetLine, config: Mapping[str, object]) -> None:
    body, name = json.dumps(config).encode(), config["name"]
    for verb in ("CREATE", "UPDATE"):
        answer = await line.asked(f"$JS.API.STREAM.{verb}.{name}", body, refusal="the server has no JetStream")
        fault = json.loads(answer.data).get("error")
        if fault is None:
            return
        if fault.get("err_code") != _EXISTS_OTHERWISE:
            break
    raise GatewayError(f"the server does not make the stream {name}: {fault.get('description', 'it does not say why')}")


@dataclass(kw_only=True)
class FileFetch:
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
    told: Callable[[CommandReply], None]
    clock: Clock
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=10.0))

    async def run(self, action: Action, place: Path | None, **wanted: Any) -> tuple[Path, FileOffer]:
        """Command a file and fetch it to this place, or under its own name here; return the place.

        `wanted` are further arguments of `command`. Raises GatewayError, GatewayUnreachable, ConfigError.
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
        last: CommandReply | None = None
        async with self.connect() as line:
            replies = command(line, self.name, seed=self.seed, action=action, number=number, **wanted)
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
            raise GatewayError(CommandReply.model_validate_json(message.data).detail)
        data: bytes = message.data
        return data


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class _Back:
    """Edits that take a change back, as the reply to the command `number` gave them.

    The reply may be anybody's, and the sender signs what it says. By the seal the gateway takes only its own edits.
    """

    number: str
    edits: Sequence[SiteEdit]
    seal: str


@dataclass(kw_only=True)
class Rollout:
    """A change that goes to gateways in waves.

    Attributes:
        seed: the NKey seed of the sender, who may do everything at each gateway.
        edits: the change.
        waves: the size of the first wave, and that of the others.
        healthy_seconds: the time over which all changed gateways must be well before the next wave.
        look_seconds: the time between two looks at them.
        told: takes sentences for the person who runs it.
    """

    line: FleetLine
    seed: str
    edits: Sequence[SiteEdit]
    waves: tuple[int, int]
    healthy_seconds: float
    told: Callable[[str], None]
    clock: Clock
    look_seconds: float = 2.0
    _changed: dict[str, _Back] = field(default_factory=dict, init=False)

    async def run(self, names: Sequence[str]) -> None:
        """Change these gateways. Raises ConfigError if it cannot begin, GatewayError once it was taken back."""
        before = await self._seen()
        for name in names:
            if why := self._why_not_well(before.get(name), None):
                raise ConfigError(f"{name} {why}; nothing was changed")
        try:
            for wave in self._waves(names):
                for name in wave:
                    self._changed[name] = await self._change(name, self.edits)
                await self._stay_well(before)
        except GatewayError as error:
            self.told(f"stopped: {error}")
            await self._take_back()
            raise GatewayError("the change is not rolled out; see above for each gateway") from error

    def _waves(self, names: Sequence[str]) -> Iterator[Sequence[str]]:
        first, others = self.waves
        yield names[:first]
        for begin in range(first, len(names), others):
            yield names[begin : begin + others]

    async def _change(self, name: str, edits: Sequence[SiteEdit], *, undone: _Back | None = None) -> _Back:
        """Change one gateway, or undo a change; wait for the end of its trial, and return what takes it back.

        Raises GatewayError.
        """
        last: CommandReply | None = None
        place, number = FleetName(*name.split(".")), randomness.token_hex(16)
        try:
            async for reply in command(
                self.line,
                place,
                seed=self.seed,
                action=Action.EDIT,
                edits=edits,
                undoes=None if undone is None else undone.number,
                seal="" if undone is None else undone.seal,
                number=number,
            ):
                last = reply
        except (FleetAway, FleetRefused) as error:
            raise GatewayError(f"{name}: what became of the change is unknown, look at it: {error}") from error
        if last is None or last.state != "done":
            raise GatewayError(f"{name}: {'no reply' if last is None else last.detail or last.state}")
        self.told(f"{name}: {last.detail}")
        try:
            return _Back(number, _EDITS.validate_python(last.result), last.seal)
        except ValidationError as error:
            raise GatewayError(f"{name} does not say how its change is taken back; look at it") from error

    async def _stay_well(self, before: Mapping[str, Seen]) -> None:
        """Watch the changed gateways for the given time. Raises GatewayError for one that is not well."""
        begun = self.clock.monotonic()
        while True:
            waited, seen = self.clock.monotonic() - begun, await self._seen()
            for name in self._changed:
                await self._ask(name)
                if why := self._why_not_well(seen.get(name), before.get(name)):
                    raise GatewayError(f"{name} {why}")
            if waited >= self.healthy_seconds:
                return
            await asyncio.sleep(self.look_seconds)

    async def _ask(self, name: str) -> None:
        """Ask a gateway for a nonce, whether it lives. Raises GatewayError."""
        try:
            await self.line.asked(FleetName(*name.split(".")).commands, ASK_NONCE, refusal="it is away")
        except (FleetAway, FleetRefused) as error:
            raise GatewayError(f"{name} does not answer: {error}") from error

    def _why_not_well(self, seen: Seen | None, before: Seen | None) -> str:
        if seen is None:
            return "has never been heard"
        if self.clock.wall().micros - seen.at > AWAY_SECONDS * 1_000_000:
            return "is away"
        if not seen.beat.ready:
            return f"is not ready: {seen.beat.headline}"
        if before is not None and _alarms(seen) > _alarms(before):
            return f"has a new alarm: {seen.beat.headline}"
        return ""

    async def _take_back(self) -> None:
        """Take the change back wherever it was made, the last first; tell of each gateway where that fails."""
        for name, back in reversed(self._changed.items()):
            try:
                await self._change(name, back.edits, undone=back)
                self.told(f"{name}: taken back")
            except GatewayError as error:
                self.told(f"{name} could not be taken back, look at it: {error}")

    async def _seen(self) -> dict[str, Seen]:
        return {one.name: one async for one in gateways(self.line)}


def _alarms(seen: Seen) -> int:
    return sum(problem.severity == "alarm" for problem in seen.beat.problems)


def read_edits(text: str) -> tuple[SiteEdit, ...]:
    """Read the edits of a file in TOML. Raises ConfigError for edits of accounts, ValueError for what are no edits."""
    raw = tomllib.loads(text).get("edits")
    if isinstance(raw, list) and any("account" in str(one.get("section")) for one in raw if isinstance(one, dict)):
        raise ConfigError("accounts are not in the site file: make them at each site with edge-gateway users")
    found = _EDITS.validate_python(raw)
    if not found:
        raise ValueError("there are no edits")
    return found
