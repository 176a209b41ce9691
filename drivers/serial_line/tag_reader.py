"""Readers of tags and cards that speak frames: one driver for polled readers, one for those that send by themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from drivers.bus.bus import Bus
from drivers.card_hold import CardHold
from drivers.contract import (
    CardPresented,
    DriverError,
    MonotonicSeconds,
    ProtocolViolation,
    Report,
    Reports,
)
from drivers.gates.polls import PollWatch, poll_deadline
from drivers.link import LinkSpec
from drivers.serial_line.frames import FrameSplitter
from drivers.serial_line.profile import Query, TagReaderProfile
from drivers.serial_line.speaking_reader import SpeakingReader
from drivers.serial_line.unit_requests import FrameRequests
from drivers.texts import BLANKS


class _Presenter:
    """The maker of one reader's reports from its frames."""

    def __init__(self, *, device_id: int, profile: TagReaderProfile, unit: int, hold_seconds: float) -> None:
        self._device_id = device_id
        self._profile = profile
        self._unit = unit
        self._hold = CardHold(seconds=hold_seconds)

    def cards(self, frame: bytes, *, at: MonotonicSeconds) -> tuple[CardPresented, ...]:
        """Return the cards that a frame reports anew; none for a frame of another kind.

        Raises ProtocolViolation for a frame whose tags do not fill it exactly, or are no characters where they must be.
        """
        if not any(reading.matches(frame, unit=self._unit) for reading in self._profile.readings):
            return ()
        cards = [self._card(tag, at) for tag in self._profile.tags.of(frame)]
        return tuple(report for card in cards if (report := self._hold.of(card)) is not None)

    def _card(self, tag: bytes, at: MonotonicSeconds) -> CardPresented:
        if not self._profile.tags.text:
            return CardPresented(self._device_id, 8 * len(tag), int.from_bytes(tag, "big"), "", at)
        text = tag.decode("ascii", errors="replace").strip(BLANKS)
        if not text or not (text.isascii() and text.isprintable()):
            raise ProtocolViolation(f"a tag of {len(tag)} bytes that are no characters")
        return CardPresented(self._device_id, 0, 0, text, at)


class PolledTagReader:
    """A `drivers.contract.Reader` for a reader that is polled for tags.

    Args:
        device_id: the id that its reports carry.
        bus: the line, which the caller runs.
        profile: the description of the reader, with a `poll`.
        query: the profile's `poll`.
        unit: the reader's address on the line.
        hold_seconds: the seconds for which repeated readings of a tag are not reported again.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        bus: Bus,
        profile: TagReaderProfile,
        query: Query,
        unit: int,
        hold_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._profile = profile
        self._query = query
        self._monotonic = monotonic
        self._requests = FrameRequests(bus=bus, profile=profile, unit=unit)
        self._presenter = _Presenter(device_id=device_id, profile=profile, unit=unit, hold_seconds=hold_seconds)

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Poll and report until cancelled."""
        watch = PollWatch(device_id=self._device_id, started_at=self._monotonic())
        while True:
            due = self._monotonic() + self._profile.poll_ms / 1000
            for report in await self._poll(watch):
                reports(report)
            await asyncio.sleep(max(0.0, due - self._monotonic()))

    async def _poll(self, watch: PollWatch) -> tuple[Report, ...]:
        deadline = poll_deadline(watch, now=self._monotonic())
        try:
            frame, asked_at = await self._requests.ask(self._query, deadline=deadline)
            cards = self._presenter.cards(frame, at=self._monotonic())
        except DriverError as error:
            return watch.failed(error, at=self._monotonic())
        return (*watch.answered(None, {}, at=asked_at), *cards)


class SpeakingTagReader(SpeakingReader):
    """A `drivers.contract.Reader` for a reader that sends a frame for each card by itself.

    Args:
        device_id: the id that its reports carry.
        spec: the reader's line, which nothing else may use.
        profile: the description of the reader, without a `poll`.
        unit: the reader's address, where its frames carry one.
        hold_seconds: the seconds for which repeated readings of a tag are not reported again.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        spec: LinkSpec,
        profile: TagReaderProfile,
        unit: int,
        hold_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(device_id=device_id, spec=spec, monotonic=monotonic)
        self._framing = profile.replies
        self._presenter = _Presenter(device_id=device_id, profile=profile, unit=unit, hold_seconds=hold_seconds)

    def _splitter(self, *, torn: bool, cut: bool) -> FrameSplitter:
        return FrameSplitter(self._framing, torn=torn or cut)

    def _cards(self, message: bytes, at: MonotonicSeconds) -> tuple[CardPresented, ...]:
        return self._presenter.cards(message, at=at)

    def _why_dropped(self, data: bytes) -> str:  # noqa: ARG002 (the base's signature)
        return "bytes that are no frame of its profile"
