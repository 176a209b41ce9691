"""A card reader or keypad that speaks OSDP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from drivers.card_hold import CardHold
from drivers.contract import (
    CardPresented,
    DeviceConnected,
    Feedback,
    KeysPressed,
    MessageRefused,
    Reports,
    TamperChanged,
)
from drivers.losses import Loss
from drivers.osdp.line import OsdpLine
from drivers.osdp.messages import CardRead, Connected, Happening, KeysTyped, Lost, Refused, TamperSeen


class OsdpReader:
    """A `drivers.contract.ShowingReader` over a shared line.

    Connected means that the reader answers in a secure channel under its own key. A reader without one counts as lost.

    Args:
        device_id: the id that its reports carry.
        line: the reader's line, which the caller runs.
        address: the reader's address on the line, 0 to 126.
        hold_seconds: for so long, a card that stays is presented once; see `CardHold`.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        line: OsdpLine,
        address: int,
        hold_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._line = line
        self._address = address
        self._hold = CardHold(seconds=hold_seconds)
        self._monotonic = monotonic
        self._is_connected: bool | None = None
        self._loss = Loss(device_id=device_id, apart=0.0)  # the line reports each reason once
        self._is_tampered = False

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Report cards, keys, tamper and losses until cancelled."""
        self._is_connected = None
        self._loss.over()
        with self._line.attached(self._address, partial(self._take, reports)):
            await asyncio.get_running_loop().create_future()

    def show(self, feedback: Feedback) -> None:
        """Show feedback with lamp and buzzer, as far as the reader has them."""
        self._line.show(self._address, feedback)

    def _take(self, reports: Reports, happening: Happening) -> None:
        now = self._monotonic()
        match happening:
            case CardRead():
                card = CardPresented(self._device_id, happening.bit_length, happening.bits, happening.text, now)
                if (presented := self._hold.of(card)) is not None:
                    reports(presented)
            case KeysTyped():
                reports(KeysPressed(self._device_id, happening.keys, now))
            case Refused():
                reports(MessageRefused(self._device_id, happening.reason, bytes.fromhex(happening.raw), now))
            case TamperSeen():
                # A loss does not end the tamper state: a person who opens a reader may unplug it too.
                if happening.tampered is not self._is_tampered:
                    self._is_tampered = happening.tampered
                    reports(TamperChanged(self._device_id, happening.tampered, now))
            case Connected():
                self._loss.over()
                if self._is_connected is not True:
                    self._is_connected = True
                    reports(DeviceConnected(self._device_id, now))
            case Lost():
                self._is_connected = False
                for report in self._loss.lost(happening.reason, at=now, answers=happening.answers):
                    reports(report)
            case _:
                pass  # a message about the line as a whole
