"""Devices behind one line: the requests that they received, and the faults of their answers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

MOST_REQUESTS = 10_000
_GARBLE = 0x2A

ReceivedT = TypeVar("ReceivedT")
CommandT = TypeVar("CommandT")


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """Faults of a device, which may be combined. Those from `loses_commands` on are of Modbus alone.

    Attributes:
        silent: whether it obeys but never answers.
        deaf: whether it neither obeys nor answers.
        exception: the exception code with which it refuses everything; None for none. Other devices than those of
            Modbus have one refusal, whatever the code.
        late: the seconds until it answers; it obeys at once.
        piece_seconds: the pause between the bytes of an answer; None to answer in one piece.
        corrupt: whether it garbles the middle byte of its answers.
        twice: whether it sends each answer twice.
        noise: bytes before each answer, as of a line driver that switches on.
        loses_commands: whether it ignores gate commands but answers everything else.
        pretends: whether it acknowledges gate commands and obeys none.
        wrong_unit: whether it answers with another address.
        hangs_up: whether it drops the connection instead of answering.
        hangs_up_behind: number of answers behind which it closes the connection, 1 for each; 0 for never.
        number: the transaction number in its answers over Modbus TCP; None for the request's.
    """

    silent: bool = False
    deaf: bool = False
    exception: int | None = None
    late: float = 0.0
    piece_seconds: float | None = None
    corrupt: bool = False
    twice: bool = False
    noise: bytes = b""
    loses_commands: bool = False
    pretends: bool = False
    wrong_unit: bool = False
    hangs_up: bool = False
    hangs_up_behind: int = 0
    number: int | None = None


WELL_BEHAVED = Misbehaviour()


class LineDevices(Generic[ReceivedT, CommandT]):
    """The base of the far end of a line.

    Args:
        monotonic: the clock of the devices and of the received requests.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._misbehaviours: dict[int, Misbehaviour] = {}
        self._received: deque[ReceivedT] = deque(maxlen=MOST_REQUESTS)
        self._commands: deque[CommandT] = deque(maxlen=MOST_REQUESTS)

    @property
    def received(self) -> tuple[ReceivedT, ...]:
        """The last requests, oldest first."""
        return tuple(self._received)

    @property
    def commands(self) -> tuple[CommandT, ...]:
        """The last gate commands, oldest first. Polls do not push them out."""
        return tuple(self._commands)

    def misbehave(self, unit: int, how: Misbehaviour = WELL_BEHAVED) -> None:
        """Set the faults of `unit`; without `how` it behaves well again."""
        self._misbehaviours[unit] = how


def deliver(answer: bytes, how: Misbehaviour, send: Callable[[bytes], None]) -> None:
    """Send an answer as the device misbehaves."""
    if how.corrupt:
        middle = len(answer) // 2
        answer = answer[:middle] + bytes((answer[middle] ^ _GARBLE,)) + answer[middle + 1 :]
    answer = how.noise + answer * (2 if how.twice else 1)
    if how.late == 0 and how.piece_seconds is None:
        send(answer)
        return
    pieces = [answer] if how.piece_seconds is None else [answer[place : place + 1] for place in range(len(answer))]
    loop = asyncio.get_running_loop()
    for place, piece in enumerate(pieces):
        loop.call_later(how.late + place * (how.piece_seconds or 0.0), send, piece)
