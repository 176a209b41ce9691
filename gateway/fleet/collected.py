"""Records of the stream as rows of a database. Pure.

Whoever has a gateway's key can put anything on its subjects. What is no record becomes a refused row: it stops
nothing, and nothing is lost.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, TypeAlias

from gateway.fleet.events_up import SENT
from gateway.fleet.messages import Kept

_LARGEST_INT: Final = 2**63 - 1
_SUBJECT: Final = re.compile(rf"events\.([a-z0-9_-]{{1,40}})\.([a-z0-9_-]{{1,40}})\.({'|'.join(SENT)})")
_BOX: Final = re.compile(r"[0-9]{1,20}")

Values: TypeAlias = tuple[datetime, str, str, str, int, str, str, datetime, str]
"""The values of `COLUMNS`."""
COLUMNS: Final = ("at", "message_id", "site", "gateway", "id", "name", "lane", "stored_at", "body")


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a table, which is called like the list that it comes from."""

    table: str
    values: Values

    @property
    def at(self) -> datetime:
        """The record's own time, in UTC."""
        return self.values[0]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A message that is no record of a gateway, with the reason."""

    subject: str
    sequence: int
    stored_at: datetime
    why: str
    data: bytes


def row_of(message: Kept) -> Row | RefusedRow:
    """Read a message of the stream."""
    stored_at = datetime.fromtimestamp(message.at / 1_000_000, UTC)
    try:
        return _row(message, stored_at)
    except (ValueError, OverflowError, RecursionError) as error:
        why = str(error) if type(error) is ValueError else "it is no JSON that can be kept"
        subject = message.subject.replace("\0", "")
        return RefusedRow(subject, message.sequence, stored_at, why, message.data)


def _row(message: Kept, stored_at: datetime) -> Row:
    """Read a record. Raises ValueError, OverflowError, RecursionError."""
    named = _SUBJECT.fullmatch(message.subject)
    if named is None:
        raise ValueError("its subject is none of a gateway's lists")
    site, gateway, name = named.groups()
    record = json.loads(message.data, parse_constant=_refuse)
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004  # the fault of a message, not of the program
    number = record.get("id")
    if not isinstance(number, int) or not 0 < number <= _LARGEST_INT:
        raise ValueError("it has no id")
    box = message.message_id.removeprefix(f"{site}.{gateway}.{name}.").removesuffix(f".{number}")
    if not _BOX.fullmatch(box):
        raise ValueError("its message id is not that of its record")
    body = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body.encode()  # halves of a surrogate pair alone have no UTF-8
    if "\\u0000" in body:
        raise ValueError("it holds the character NUL, which PostgreSQL does not keep")
    lane = record.get("lane_id", record.get("lane", ""))
    values = (
        _time(record),
        message.message_id,
        site,
        gateway,
        number,
        str(record.get("name", "")),
        str(lane or ""),
        stored_at,
        body,
    )
    return Row(name, values)


def _time(record: dict[str, Any]) -> datetime:
    try:
        found = datetime.fromisoformat(str(record.get("date_at")))
    except ValueError as error:
        raise ValueError("it has no date") from error
    if found.tzinfo is None:
        raise ValueError("its date has no zone")
    return found.astimezone(UTC)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no JSON")
