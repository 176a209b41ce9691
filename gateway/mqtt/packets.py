"""Packets of MQTT 5 (OASIS standard) for one who only publishes, and the broker's answers to them. Pure.

There is no packet here that subscribes, and none that brings a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

LONGEST_ANSWER = 4_096
"""Bytes of the longest answer that is read; the broker is told so."""
MOST_UNANSWERED = 65_535
"""The most messages that a broker takes before it has answered, unless it says less (4.9)."""
REFUSED = 0x80
"""Reasons from here on are refusals (2.4)."""
OLDER_VERSION = 0x01
"""The refusal of a version, in the words of the versions before (3.2.2.2 there)."""
_VERSION = 5
_LONGEST_NUMBER = 4

_NUMBERS = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
}
"""Properties that are numbers, and their bytes (2.2.2.2)."""
_TEXTS = {**dict.fromkeys((0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F), 1), 0x26: 2}
"""Properties that are texts or bytes with their length before them, and how many of these they are."""
_IS_TEXT, _EXPIRY, _CONTENT_TYPE, _USER_PROPERTY = b"\x01\x01", b"\x02", b"\x03", b"\x26"
_KEEP_ALIVE, _RECEIVE_MAXIMUM, _LONGEST_PACKET = 0x13, 0x21, 0x27


class MalformedPacket(Exception):
    """The bytes are no answer of an MQTT 5 broker to one who only publishes."""


class AnswerKind(IntEnum):
    """Kinds of answers, by their number in the fixed header (2.1.2)."""

    CONNECTED = 2
    TAKEN = 4
    PONG = 13
    DISCONNECT = 14


_KINDS = frozenset(AnswerKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttMessage:
    """A message to publish.

    Attributes:
        topic: its topic.
        payload: its text in UTF-8; empty takes the kept message of the topic away.
        kept: whether the broker keeps it for those who subscribe later ("retained").
        expiry_seconds: so long the broker keeps it for whoever has not got it; 0 for good.
        content_type: the form of the payload.
        box: the number of the data folder whose ids the payload has, 0 for none.
    """

    topic: str
    payload: bytes
    kept: bool = False
    expiry_seconds: int = 0
    content_type: str = "application/json"
    box: int = 0

    @property
    def properties(self) -> bytes:
        """The properties, with their length before them (3.3.2.3)."""
        expiry = _EXPIRY + self.expiry_seconds.to_bytes(4) if self.expiry_seconds else b""
        box = _USER_PROPERTY + _text("box") + _text(str(self.box)) if self.box else b""
        found = _IS_TEXT + expiry + _CONTENT_TYPE + _text(self.content_type) + box
        return _number(len(found)) + found


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAnswer:
    """An answer of the broker.

    Attributes:
        kind: its kind.
        reason: its reason code, 0 for success.
        packet_id: the message that it answers, for TAKEN.
        most_unanswered: so many messages may wait for their answers, for CONNECTED.
        longest_packet: bytes of the longest packet that the broker takes, 0 for no limit, for CONNECTED.
        keep_alive: the seconds of silence that the broker allows, None for those that were asked for, for CONNECTED.
    """

    kind: AnswerKind
    reason: int = 0
    packet_id: int = 0
    most_unanswered: int = MOST_UNANSWERED
    longest_packet: int = 0
    keep_alive: int | None = None

    @property
    def is_refusal(self) -> bool:
        """True if the broker refuses. A broker of an older version refuses a connection with a low number."""
        return self.reason >= REFUSED or (self.kind is AnswerKind.CONNECTED and self.reason > 0)


def connect(*, client_id: str, will: MqttMessage, keep_alive: int, username: str | None, password: str | None) -> bytes:
    """Make the first packet. The broker publishes `will` once the connection is lost (3.1)."""
    flags = 0b0000_1110 | will.kept << 5 | (password is not None) << 6 | (username is not None) << 7
    properties = _LONGEST_PACKET.to_bytes(1) + LONGEST_ANSWER.to_bytes(4)
    return _packet(
        0x10,
        _text("MQTT") + bytes([_VERSION, flags]) + keep_alive.to_bytes(2) + _number(len(properties)) + properties,
        _text(client_id) + will.properties + _text(will.topic) + _sized(will.payload),
        b"" if username is None else _text(username),
        b"" if password is None else _text(password),
    )


def publish(message: MqttMessage, *, packet_id: int) -> bytes:
    """Make the packet of a message that the broker must acknowledge, "QoS 1" (3.3)."""
    head = _text(message.topic) + packet_id.to_bytes(2) + message.properties
    return _packet(0x32 | message.kept, head, message.payload)


PING = b"\xc0\x00"
"""The packet that the broker answers with PONG (3.12)."""
DISCONNECT_WITH_WILL = b"\xe0\x01\x04"
"""The last packet, upon which the broker publishes the will (3.14)."""


class Answers:
    """The reader of the broker's answers from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[BrokerAnswer]:
        """Take bytes, and yield the answers that are whole. Raises MalformedPacket."""
        self._waiting += data
        while (head := _head(self._waiting)) is not None:
            kind, begin, end = head
            if end > LONGEST_ANSWER:
                raise MalformedPacket(f"an answer of {end:,} bytes")
            if end > len(self._waiting):
                return
            body = bytes(self._waiting[begin:end])
            del self._waiting[:end]
            yield _answer(kind, body)


def _head(data: bytearray) -> tuple[AnswerKind, int, int] | None:
    """Return the kind of the first packet, and where its body begins and ends; None until its length is there (2.1)."""
    if data and (data[0] & 0x0F or data[0] >> 4 not in _KINDS):
        raise MalformedPacket(f"a packet that begins with {data[0]:#04x}")
    length = 0
    for place in range(1, min(len(data), _LONGEST_NUMBER + 1)):
        length |= (data[place] & 0x7F) << 7 * (place - 1)
        if data[place] < 0x80:
            return AnswerKind(data[0] >> 4), place + 1, place + 1 + length
    if len(data) > _LONGEST_NUMBER:
        raise MalformedPacket("a length of more than four bytes")
    return None


def _answer(kind: AnswerKind, body: bytes) -> BrokerAnswer:
    field = _Fields(body)
    if kind is AnswerKind.PONG:
        return BrokerAnswer(kind=kind)
    if kind is AnswerKind.CONNECTED:
        field.number(1)  # whether there was a session before (3.2.2.1); none is asked for
        if field.left == 1:  # without properties, as an older version answers
            return BrokerAnswer(kind=kind, reason=field.number(1) or OLDER_VERSION)
    packet_id = field.number(2) if kind is AnswerKind.TAKEN else 0
    if not field.left and kind is not AnswerKind.CONNECTED:  # others leave a success out (3.4.2.1, 3.14.2.1)
        return BrokerAnswer(kind=kind, packet_id=packet_id)
    reason, found = field.number(1), field.properties() if field.left else {}
    return BrokerAnswer(
        kind=kind,
        reason=reason,
        packet_id=packet_id,
        most_unanswered=found.get(_RECEIVE_MAXIMUM, 0) or MOST_UNANSWERED,
        longest_packet=found.get(_LONGEST_PACKET, 0),
        keep_alive=found.get(_KEEP_ALIVE),
    )


class _Fields:
    """The fields of a packet's body, read one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._place

    def number(self, size: int) -> int:
        """Read a number of so many bytes."""
        return int.from_bytes(self._taken(size))

    def skip(self, size: int) -> None:
        """Leave out so many bytes."""
        self._taken(size)

    def properties(self) -> dict[int, int]:
        """Read the properties; return those that are numbers."""
        length = self._varying()
        if length > self.left:
            raise MalformedPacket("properties that are not whole")
        inner, found = _Fields(self._taken(length)), dict[int, int]()
        while inner.left:
            name = inner.number(1)
            if size := _NUMBERS.get(name):
                found[name] = inner.number(size)
                continue
            if name not in _TEXTS:
                raise MalformedPacket(f"a property that no answer has, {name:#04x}")
            for _ in range(_TEXTS[name]):
                inner.skip(inner.number(2))
        return found

    def _varying(self) -> int:
        value = 0
        for place in range(_LONGEST_NUMBER):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise MalformedPacket("a number of more than four bytes")

    def _taken(self, size: int) -> bytes:
        if size > self.left:
            raise MalformedPacket("a packet that is not whole")
        self._place += size
        return self._data[self._place - size : self._place]


def _packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([first]) + _number(len(body)) + body


def _number(value: int) -> bytes:
    """Encode a number in one to four bytes (1.5.5)."""
    encoded = bytearray()
    while True:
        value, low = divmod(value, 128)
        encoded.append(low | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def _text(value: str) -> bytes:
    return _sized(value.encode())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2) + data
