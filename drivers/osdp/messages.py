"""Messages between the gateway and the process of a line: a line of JSON each.

The child parses bytes from outside, so its messages are validated.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from drivers.bus.line_quality import Failure
from drivers.contract import Feedback, ProtocolViolation

LONGEST_LINE = 8 * 1024
LONGEST_CARD_BITS = 256
MOST_READERS = 32
HIGHEST_ADDRESS = 126
MOST_OUTCOMES = 500

Address = Annotated[int, Field(ge=0, le=HIGHEST_ADDRESS)]


class _Message(BaseModel):
    # An error must not show the refused input, because a setup holds keys.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def to_line(self) -> bytes:
        """Encode the message with its line ending."""
        return self.model_dump_json().encode() + b"\n"


class ReaderSetup(_Message):
    """A reader of the line: its address, and its key as 32 hexadecimal digits."""

    address: Address
    key: str = Field(pattern=r"^[0-9a-f]{32}$", repr=False)


class Setup(_Message):
    """The first message to the child: the line's settings and its readers.

    `install` connects with the default key that every new reader knows, only to give the reader its own key.
    """

    url: str
    baud: int
    parity: Literal["none", "even", "odd"]
    stop_bits: Literal[1, 2]
    readers: tuple[ReaderSetup, ...] = Field(min_length=1, max_length=MOST_READERS)
    install: bool = False


class Show(_Message):
    """A message to the child: show this feedback at a reader."""

    address: Address
    feedback: Feedback


class Connected(_Message):
    """A message from the child: the reader answers in a secure channel under its own key."""

    kind: Literal["connected"] = "connected"
    address: Address


class Lost(_Message):
    """A message from the child: the reader has no secure channel under its own key, for this reason.

    `answers` is True when it still answers, but with another key or without a secure channel.
    """

    kind: Literal["lost"] = "lost"
    address: Address
    reason: str = Field(max_length=300)
    answers: bool = False


class CardRead(_Message):
    """A card that a reader read: bits, most significant first, or text."""

    kind: Literal["card"] = "card"
    address: Address
    bit_length: int = Field(ge=0, le=LONGEST_CARD_BITS)
    bits: int = Field(ge=0, lt=1 << LONGEST_CARD_BITS)
    text: str = Field(max_length=128)


class KeysTyped(_Message):
    """Keys typed on a reader's keypad: digits, `*`, `#`."""

    kind: Literal["keys"] = "keys"
    address: Address
    keys: str = Field(min_length=1, max_length=128)


class Refused(_Message):
    """A reading that was refused, with the reason and its first bytes as hexadecimal digits."""

    kind: Literal["refused"] = "refused"
    address: Address
    reason: str = Field(max_length=300)
    raw: str = Field(pattern=r"^([0-9a-f]{2}){0,128}$")


class TamperSeen(_Message):
    """A tamper report: the housing of the reader was opened or closed."""

    kind: Literal["tamper"] = "tamper"
    address: Address
    tampered: bool


class Polled(_Message):
    """A reader's outcomes since the last such message: the time of an answer in milliseconds, or how it failed."""

    kind: Literal["polled"] = "polled"
    address: Address
    outcomes: tuple[Annotated[float, Field(ge=0, le=60_000)] | Failure, ...] = Field(max_length=MOST_OUTCOMES)


class LineSeen(_Message):
    """The state of the line: `down` is the reason why it does not open, "" when it is open."""

    kind: Literal["line"] = "line"
    down: str = Field(max_length=300)


class Beat(_Message):
    """The child's heartbeat, sent every second."""

    kind: Literal["beat"] = "beat"


Happening = Connected | Lost | CardRead | KeysTyped | Refused | TamperSeen | Polled | LineSeen | Beat
_HAPPENING: TypeAdapter[Happening] = TypeAdapter(
    Annotated[Happening, Field(discriminator="kind")], config=ConfigDict(hide_input_in_errors=True)
)


def happening_of(line: bytes) -> Happening:
    """Parse a message of the child. Raises ProtocolViolation for anything else."""
    try:
        return _HAPPENING.validate_json(line)
    except ValidationError as error:
        raise ProtocolViolation(f"the line's process said what nobody understands ({len(line)} bytes)") from error
