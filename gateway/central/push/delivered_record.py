"""Check whether central still has a record under the id that it gave."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from gateway.central.client.answers import CentralDenied
from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.push.requests import answered_record
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralRefused
from gateway.domain.record_match import CREATES, is_still
from gateway.domain.writes import CARD_CREATE, ENTRY_CREATE, JsonObject


class RecordState(Enum):
    """State of a delivered record at central."""

    PRESENT = "the record that was sent"
    GONE = "nothing"
    OTHER = "another record"
    UNKNOWN = "central does not say"


async def read_record(
    client: CentralClient, kind: str, central_id: int
) -> JsonObject | Literal[RecordState.GONE, RecordState.UNKNOWN]:
    """Return central's record, or GONE or UNKNOWN if it shows none. Raises CentralUnavailable when it is offline."""
    path = READS.get(kind)
    if path is None:
        return RecordState.UNKNOWN
    try:
        answer = await client.call("POST", path, {"id": central_id})
    except CentralDenied:
        return RecordState.UNKNOWN
    except CentralRefused as error:
        if error.status != NOT_FOUND:
            return RecordState.UNKNOWN
        if (doubtful := await doubt(client, error)) is not None:
            raise doubtful from error
        return RecordState.GONE
    return answered_record(answer, CREATES[kind].resources) or RecordState.UNKNOWN


async def record_state(
    client: CentralClient, kind: str, central_id: int, marks: JsonObject, *, names_sources: bool = False
) -> RecordState:
    """Return the state at central of the record with these marks; see `is_still`. Raises as `read_record` does."""
    record = await read_record(client, kind, central_id)
    if isinstance(record, RecordState):
        return record
    same = is_still(kind, marks, record, names_sources=names_sources)
    return RecordState.PRESENT if same else RecordState.OTHER


async def names_lost_card(client: CentralClient, kind: str, body: JsonObject) -> bool:
    """Return whether a refused create of an entry names a card that central no longer has.

    Raises CentralUnavailable.
    """
    card_id = body.get("access_id")
    if kind != ENTRY_CREATE.kind or not isinstance(card_id, int):
        return False
    return await record_state(client, CARD_CREATE.kind, card_id, {}) is RecordState.GONE
