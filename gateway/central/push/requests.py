"""Rows of the outbox as requests, and the records in central's answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from gateway.central.client.answers import JsonObject
from gateway.central.client.values import record_id
from gateway.domain.writes import WRITES, Effect, WriteOperation
from gateway.store import OutboxRow

_BODY = TypeAdapter(JsonObject)


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """The request that delivers a row: an operation and its body."""

    operation: WriteOperation
    body: JsonObject


def delivery_request(row: OutboxRow) -> DeliveryRequest | str:
    """Return the request for a row, or why there is none."""
    try:
        body = _BODY.validate_json(row.body)
    except ValidationError:
        return "its body is not a JSON object"
    operation = WRITES.get((row.kind, row.action))
    return (
        f"no operation takes '{row.action}' of '{row.kind}'" if operation is None else DeliveryRequest(operation, body)
    )


def creates_among(rows: Iterable[OutboxRow]) -> Iterator[WriteOperation]:
    """Yield the operations of rows that are about to create records, in the order of their first rows."""
    for action in dict.fromkeys((row.kind, row.action) for row in rows if not row.begun):
        operation = WRITES.get(action)
        if operation is not None and operation.effect is Effect.CREATE:
            yield operation


def answered_record(answer: JsonObject, resources: tuple[str, ...]) -> JsonObject | None:
    """Return the record in central's answer to a write, None when there is none."""
    for name in resources:
        record = answer.get(name)
        if isinstance(record, dict) and record:
            return record
    return answer if "success" not in answer and record_id(answer) is not None else None


def given_id(answer: JsonObject, resources: tuple[str, ...]) -> int | None:
    """Return the id that central gave a new record, None when its answer has none."""
    for name in resources:
        record = answer.get(name)
        if isinstance(record, dict) and (found := record_id(record)) is not None:
            return found
    return record_id(answer)
