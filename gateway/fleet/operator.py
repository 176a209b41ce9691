"""Work of those who run a fleet: prepare a server, see how each gateway is, and command one."""

from __future__ import annotations

import json
import secrets as randomness
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeVar

import structlog
from pydantic import ValidationError

from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.fleet.heartbeat import Beat
from gateway.fleet.line import FleetLine, FleetRefused
from gateway.fleet.names import AREAS_BUCKET, AREAS_STREAM, BUCKET, BUCKET_STREAM, STREAM, STREAM_SUBJECTS, FleetName
from gateway.fleet.signed_commands import ASK_NONCE, Action, FleetCommand, Nonce, Reply, SiteEdit, signed

log = structlog.get_logger(__name__)

DUPLICATE_SECONDS: Final = 600
_NANOSECONDS: Final = 1_000_000_000
_DAY: Final = 86_400
_REPLY_SECONDS: Final = 130.0
Told = TypeVar("Told", Nonce, Reply)
_EXISTS_OTHERWISE = 10058


@dataclass(frozen=True, slots=True)
class Seen:
    """A gateway as its last heartbeat tells. `at`: when the server took that (wall micros)."""

    name: str
    beat: Beat
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
            yield Seen(kept.subject.removeprefix(begin), Beat.model_validate_json(kept.data), kept.at)
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
) -> AsyncIterator[Reply]:
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
        reply = _answer(Reply, message.data, name)
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
