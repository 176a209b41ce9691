"""Messages of streams, as they are sent and as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream: its sequence number there, its message id, and its other headers."""

    sequence: int
    message_id: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """A message as a stream keeps it: with its sequence number and message id there.

    `at` is when the server took it (wall micros).
    """

    subject: str
    data: bytes
    at: int
    sequence: int
    message_id: str


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a stream. `created` names it: a stream that is made anew has another time."""

    created: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message for a stream. With `after`, the stream takes it only if that is the subject's last sequence number."""

    subject: str
    data: bytes
    message_id: str = ""
    after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
