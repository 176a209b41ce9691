"""A card reader that sends a line for each card."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from drivers.contract import CardPresented, MonotonicSeconds, ProtocolViolation, Reports
from drivers.link import Arrival, Connection, LinkSpec
from drivers.serial_line.forms import Form, read_line
from drivers.serial_line.lines import TORN_SECONDS, LineSplitter
from drivers.serial_line.unasked_lines import listen, next_arrival

log = structlog.get_logger(__name__)


class SerialReader:
    """`drivers.contract.Reader` over lines of text.

    Such a reader says nothing until a card comes: connected means that its port is open.

    Args:
        device_id: the id that its reports carry.
        spec: its line; nobody else may use it.
        terminator: what ends each line.
        prefix: what each line begins with and is no part of the card; it may be missing.
        form: how the line carries the card; see `forms.read_line`.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        spec: LinkSpec,
        terminator: str = "\r\n",
        prefix: str = "",
        form: Form = "text",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._spec = spec
        self._terminator = terminator.encode("latin-1")
        self._prefix = prefix
        self._form = form
        self._monotonic = monotonic
        self._refused_lines = 0
        self._was_mid_line = False

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    @property
    def refused_lines(self) -> int:
        """How many lines came that are not of the reader's form."""
        return self._refused_lines

    async def run(self, reports: Reports) -> None:
        """Keep the port open and report cards until cancelled."""
        await listen(
            self._spec,
            lambda connection, unsettled: self._read(connection, unsettled, reports),
            device_id=self._device_id,
            reports=reports,
            monotonic=self._monotonic,
        )

    async def _read(self, connection: Connection, unsettled: Arrival | None, reports: Reports) -> None:
        """Report cards until the line hangs up, which is a LinkError.

        A line that is torn by that is dropped, with whatever comes of it later: half a number is another card's number.
        """
        splitter = LineSplitter(terminator=self._terminator, torn=self._was_mid_line or unsettled is not None)
        if unsettled is not None:
            self._take(splitter, unsettled, reports)
        try:
            while True:
                arrival = await next_arrival(connection, within=TORN_SECONDS if splitter.is_pending else None)
                if arrival is None:
                    splitter.end_of_silence()
                    self._refuse_torn()
                else:
                    self._take(splitter, arrival, reports)
        finally:
            self._was_mid_line = splitter.is_mid_line

    def _take(self, splitter: LineSplitter, arrival: Arrival, reports: Reports) -> None:
        was_torn = splitter.is_torn
        for line in splitter.feed(arrival.data):
            self._present(line, arrival.at, reports)
        if was_torn and not splitter.is_torn:
            self._refuse_torn()

    def _refuse_torn(self) -> None:
        self._refused_lines += 1
        log.warning("line_torn", device=self._device_id, count=self._refused_lines)

    def _present(self, line: bytes, at: MonotonicSeconds, reports: Reports) -> None:
        try:
            reading = read_line(line, form=self._form, prefix=self._prefix)
        except ProtocolViolation as violation:
            self._refused_lines += 1
            log.warning("line_refused", device=self._device_id, reason=str(violation), count=self._refused_lines)
            return
        reports(CardPresented(self._device_id, reading.bit_length, reading.bits, reading.text, at))
