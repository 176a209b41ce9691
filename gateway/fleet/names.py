"""Names in the fleet (subjects, the stream of events, the bucket of heartbeats), and messages of streams. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.store import ListName

STREAM = "EVENTS"
"""The stream that takes the events of all gateways of a NATS account."""
STREAM_SUBJECTS = "events.>"
BUCKET = "fleet"
"""The key-value bucket with the last heartbeat of each gateway."""
BUCKET_STREAM = f"KV_{BUCKET}"
AREAS_BUCKET = "areas"
"""The key-value bucket with the holders and counts of shared areas."""
AREAS_STREAM = f"KV_{AREAS_BUCKET}"
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class FleetName:
    """A gateway's name in the fleet: its site and its own name there."""

    site: str
    gateway: str

    def __str__(self) -> str:
        return f"{self.site}.{self.gateway}"

    def events(self, name: ListName) -> str:
        """Return the subject of one list of records, such as `events.north.gate-1.camera_event`."""
        return f"events.{self}.{name}"

    @property
    def heartbeat(self) -> str:
        """The subject that puts this gateway's key into the bucket."""
        return f"$KV.{BUCKET}.{self}"

    @property
    def areas(self) -> str:
        """The subjects of the site's shared areas begin with this."""
        return f"$KV.{AREAS_BUCKET}.{self.site}"

    @property
    def area_counts(self) -> str:
        """The subject of this gateway's counts in shared areas."""
        return f"{self.areas}.count.{self.gateway}"

    def area_holder(self, key: str) -> str:
        """Return the subject of a holder in shared areas, by the holder's key."""
        return f"{self.areas}.holder.{key}"

    @property
    def commands(self) -> str:
        """The subject on which this gateway takes commands."""
        return f"cmd.{self}"

    @property
    def cards(self) -> str:
        """The subject of notices on changed cards, which all gateways of the site take."""
        return f"cards.{self.site}"

    @property
    def inbox(self) -> str:
        """Prefix of the subjects on which this gateway gets answers."""
        return f"_INBOX.{self}"

    def message_id(self, name: ListName, *, box: int, record_id: int) -> str:
        """Return the `Nats-Msg-Id` of a record; no other record of the fleet has it.

        `box` is the number of the data folder, because a replaced box counts from 1 again.
        """
        return f"{self}.{name}.{box}.{record_id}"

    def record_id(self, name: ListName, *, box: int, message_id: str) -> int | None:
        """Return the record's id in a message id of this gateway, list and box; None for any other."""
        begin = f"{self}.{name}.{box}."
        number = message_id.removeprefix(begin)
        return number_in(number) if message_id.startswith(begin) else None


def number_in(text: str) -> int | None:
    """Return the number that a message names, None for anything else: others may send what they like."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream: its sequence number there, its message id, and its other headers."""

    sequence: int
    message_id: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamMessage:
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
