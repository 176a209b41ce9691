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
    MessageRefused,
    MonotonicSeconds,
    ProtocolViolation,
    Report,
    Reports,
)
from drivers.gates.polls import Watch, poll_deadline
from drivers.link import Arrival, Connection, LinkSpec
from drivers.serial_line.frames import FrameSplitter
from drivers.serial_line.line_splitter import TORN_SECONDS
from drivers.serial_line.profile import Query, TagReaderProfile
from drivers.serial_line.unasked_lines import listen, next_arrival
from drivers.serial_line.unit_requests import FrameRequests
from drivers.texts import BLANKS

_QUIET_SECONDS = 0.2
"""Seconds of silence after which an incomplete frame is given up."""


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
        watch = Watch(device_id=self._device_id, started_at=self._monotonic())
        while True:
            due = self._monotonic() + self._profile.poll_ms / 1000
            for report in await self._poll(watch):
                reports(report)
            await asyncio.sleep(max(0.0, due - self._monotonic()))

    async def _poll(self, watch: Watch) -> tuple[Report, ...]:
        deadline = poll_deadline(watch, now=self._monotonic())
        try:
            frame, asked_at = await self._requests.ask(self._query, deadline=deadline)
            cards = self._presenter.cards(frame, at=self._monotonic())
        except DriverError as error:
            return watch.failed(error, at=self._monotonic())
        return (*watch.answered(None, {}, at=asked_at), *cards)


class SpeakingTagReader:
    """A `drivers.contract.Reader` for a reader that sends a frame for each card by itself.

    Such a reader sends nothing until it reads a card, so connected only means that its port is open.

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
        self._device_id = device_id
        self._spec = spec
        self._framing = profile.replies
        self._was_mid_frame = False
        self._monotonic = monotonic
        self._presenter = _Presenter(device_id=device_id, profile=profile, unit=unit, hold_seconds=hold_seconds)

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Keep the port open and report cards until cancelled."""
        await listen(
            self._spec,
            lambda connection, unsettled: self._hear(connection, unsettled, reports),
            device_id=self._device_id,
            reports=reports,
            monotonic=self._monotonic,
        )

    async def _hear(self, connection: Connection, unsettled: Arrival | None, reports: Reports) -> None:
        splitter = FrameSplitter(self._framing, torn=self._was_mid_frame or unsettled is not None)
        patience = TORN_SECONDS if self._framing.bears_only_ends else _QUIET_SECONDS
        last_at = self._monotonic()
        raw = b"" if unsettled is None else unsettled.data
        frames = splitter.feed(raw)
        told = 0
        try:
            while True:
                if splitter.dropped > told:
                    told = splitter.dropped
                    reports(MessageRefused(self._device_id, "bytes that are no frame of its profile", raw, last_at))
                for frame in frames:
                    self._present(frame, last_at, reports)
                arrival = await next_arrival(connection, within=patience if splitter.is_mid_frame else None)
                if arrival is None:
                    frames = splitter.end_of_silence()
                else:
                    last_at, raw = arrival.at, arrival.data
                    frames = splitter.feed(raw)
        finally:
            self._was_mid_frame = splitter.is_mid_frame or splitter.awaits_rest

    def _present(self, frame: bytes, at: MonotonicSeconds, reports: Reports) -> None:
        try:
            cards = self._presenter.cards(frame, at=at)
        except ProtocolViolation as violation:
            reports(MessageRefused(self._device_id, str(violation), frame, at))
            return
        for card in cards:
            reports(card)
