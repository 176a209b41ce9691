"""What those who run a fleet ask of its server: the stream and the bucket, and how each gateway is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import ValidationError

from gateway.domain.errors import GatewayError
from gateway.fleet.heartbeat import Beat
from gateway.fleet.line import FleetLine
from gateway.fleet.names import BUCKET, BUCKET_STREAM, STREAM, STREAM_SUBJECTS

log = structlog.get_logger(__name__)

DUPLICATE_SECONDS: Final = 600
_NANOSECONDS: Final = 1_000_000_000
_DAY: Final = 86_400
_EXISTS_OTHERWISE = 10058


@dataclass(frozen=True, slots=True)
class Seen:
    """A gateway as its last heartbeat tells. `at`: when the server took that (wall micros)."""

    name: str
    beat: Beat
    at: int


async def prepare(line: FleetLine, *, days: int, replicas: int) -> None:
    """Make the stream of events and the bucket, or change them to these settings. Raises FleetAway, GatewayError."""
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
    await _put_stream(
        line,
        {
            "name": BUCKET_STREAM,
            "subjects": [f"$KV.{BUCKET}.>"],
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
