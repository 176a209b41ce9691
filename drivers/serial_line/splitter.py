"""Splitting of a stream of bytes into messages: lines of text, or frames. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod

PAUSE_SECONDS = 0.2
"""Seconds of silence after which pending bytes are judged: whether they begin a message, or end one in another way."""
TORN_SECONDS = 5.0
"""Seconds of silence after which the begin of a message is given up.

The time is long because a serial server may hold back the rest of a line for as long as TCP takes to send it again. A
line that was given up never counts as a card, because half a number may be another card's number; nor does its rest,
however late it comes.
"""


class Splitter(ABC):
    """The finder of messages in bytes that come in any pieces.

    Attributes:
        dropped: how much was dropped because it is part of no message.
        last_dropped: the begin of what the last call has dropped.
    """

    def __init__(self, *, torn: bool) -> None:
        """Begin; `torn`: whether the first bytes may be the end of a message whose begin was missed."""
        self._torn = torn
        self._overlong = False
        self._given_up = False
        self.dropped = 0
        self.last_dropped = b""

    @property
    @abstractmethod
    def is_pending(self) -> bool:
        """True when the begin of a message waits for its end."""

    @property
    def is_mid_message(self) -> bool:
        """True when the next bytes may belong to a message that began before."""
        return self.is_pending or self._torn

    @property
    def awaits_rest(self) -> bool:
        """True when the begin of a message was given up, so that its rest may still come and look like a whole one."""
        return self._given_up

    @abstractmethod
    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Return the messages that these bytes complete."""

    @abstractmethod
    def pause(self) -> tuple[bytes, ...]:
        """Return the messages that end in the pending bytes after all. Call it after `PAUSE_SECONDS` without bytes."""

    @abstractmethod
    def end_of_silence(self) -> tuple[bytes, ...]:
        """Give up the begin of a message; return those hidden in it. Call it after `TORN_SECONDS` without bytes."""
