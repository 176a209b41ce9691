"""Readers that send by themselves: the line is kept open, and read as long as it lasts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from drivers.backoff import Reconnects
from drivers.contract import (
    CardPresented,
    DeviceConnected,
    LinkError,
    MessageRefused,
    MonotonicSeconds,
    ProtocolViolation,
    Reports,
)
from drivers.link import Arrival, Connection, LinkSpec, open_link
from drivers.losses import Loss
from drivers.serial_line.splitter import PAUSE_SECONDS, TORN_SECONDS, Splitter

_LONGEST_WAIT = 2.0
_STEADY_SECONDS = 5.0
SETTLED_SECONDS = 0.2
"""Seconds after a line was opened in which bytes may be the rest of a message that began before.

A port that is opened in the middle of a message gives its rest, and a serial server gives what it had kept. Such
devices send each message in one go, so after this much silence only the begin of a message can follow.
"""


class SpeakingReader(ABC):
    """The base of a `drivers.contract.Reader` that sends a message for each card by itself.

    Such a reader sends nothing until it reads a card, so connected only means that its line is open.

    Args:
        device_id: the id that its reports carry.
        spec: the reader's line, which nothing else may use.
        monotonic: the clock of stamps.
    """

    def __init__(self, *, device_id: int, spec: LinkSpec, monotonic: Callable[[], float]) -> None:
        self._device_id = device_id
        self._spec = spec
        self._monotonic = monotonic
        self._was_mid_message = False

    @abstractmethod
    def _splitter(self, *, torn: bool, cut: bool) -> Splitter:
        """Return the splitter of a new connection.

        `torn`: whether its first bytes may be the rest of a message; `cut`: whether the begin of one was seen before.
        """

    @abstractmethod
    def _cards(self, message: bytes, at: MonotonicSeconds) -> Iterable[CardPresented]:
        """Return the cards that a message reports anew. Raises ProtocolViolation for one that cannot be read."""

    @abstractmethod
    def _why_dropped(self, data: bytes) -> str:
        """Return why these bytes are no message, for people; "" when it needs no telling."""

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Keep the line open and report cards until cancelled.

        The reader counts as connected while its line is open, from the first bytes or `SETTLED_SECONDS` after the
        opening, whichever is first.
        """
        loss = Loss(device_id=self._device_id)
        reconnects = Reconnects(longest=_LONGEST_WAIT, steady=_STEADY_SECONDS)
        while True:
            opened_at = float("inf")
            try:
                connection = await open_link(self._spec, monotonic=self._monotonic)
                try:
                    opened_at = self._monotonic()
                    unsettled = await _next_arrival(connection, within=SETTLED_SECONDS)
                    reports(DeviceConnected(self._device_id, self._monotonic()))
                    loss.over()
                    await self._read(connection, unsettled, reports)
                finally:
                    await connection.close()
            except LinkError as error:
                reconnects.failed(lasted=self._monotonic() - opened_at)
                for report in loss.lost(str(error), at=self._monotonic()):
                    reports(report)
            await asyncio.sleep(reconnects.wait())

    async def _read(self, connection: Connection, unsettled: Arrival | None, reports: Reports) -> None:
        """Report cards until the connection is lost, which raises LinkError. `unsettled`: its first bytes, if any.

        A message that the loss cuts in two is dropped, both halves: half a number may be another card's number.
        """
        splitter = self._splitter(torn=unsettled is not None, cut=self._was_mid_message)
        arrival, last_at, paused = unsettled, self._monotonic(), False
        try:
            while True:
                dropped = splitter.dropped
                if arrival is not None:
                    last_at, paused = arrival.at, False
                    messages = splitter.feed(arrival.data)
                elif not paused:
                    paused = True
                    messages = splitter.pause()
                else:
                    paused = False
                    messages = splitter.end_of_silence()
                for message in messages:
                    self._present(message, last_at, reports)
                if splitter.dropped > dropped and (why := self._why_dropped(splitter.last_dropped)):
                    reports(MessageRefused(self._device_id, why, splitter.last_dropped, last_at))
                patience = TORN_SECONDS - PAUSE_SECONDS if paused else PAUSE_SECONDS
                arrival = await _next_arrival(connection, within=patience if splitter.is_mid_message else None)
        finally:
            self._was_mid_message = splitter.is_mid_message or splitter.awaits_rest

    def _present(self, message: bytes, at: MonotonicSeconds, reports: Reports) -> None:
        try:
            cards = self._cards(message, at)
        except ProtocolViolation as violation:
            reports(MessageRefused(self._device_id, str(violation), message, at))
            return
        for card in cards:
            reports(card)


async def _next_arrival(connection: Connection, *, within: float | None) -> Arrival | None:
    """Wait for the next bytes; return None when none come within `within` seconds. `within` None waits for ever."""
    try:
        async with asyncio.timeout(within):
            return await connection.read()
    except TimeoutError:
        return None
