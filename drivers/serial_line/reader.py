"""A card reader that sends a line for each card."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from drivers.contract import CardPresented, MessageRefused, MonotonicSeconds, ProtocolViolation, Reports
from drivers.link import Arrival, Connection, LinkSpec
from drivers.serial_line.line_splitter import TORN_SECONDS, LineSplitter
from drivers.serial_line.unasked_lines import listen, next_arrival

Form = Literal["text", "hex", "decimal", "wiegand26"]

LONGEST_BITS = 256
_NOISE = "".join(chr(code) for code in (*range(0x20), 0x20, 0x7F))


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of one line: bits (most significant first), text, or both. `bit_length` is 0 for text alone."""

    bit_length: int
    bits: int
    text: str


def read_line(line: bytes, *, form: Form, prefix: str = "") -> Reading:
    """Parse the reading in a line of this form.

    Control characters and blanks around it are ignored, and so is `prefix` at its begin.

    - `text`: printable ASCII characters, kept as they are.
    - `hex`: hexadecimal digits, 4 bits each, 256 bits at most.
    - `decimal`: a decimal number. It gives 32 bits, or 64 when it needs more, and its digits as text.
    - `wiegand26`: `FFF,CCCCC` or `FFFCCCCC`, with facility 0-255 and card 0-65535. It gives the 26 bits of H10301 with
      their parity. All 3 and 5 digits are required, so that a torn line never passes for another card.

    Raises ProtocolViolation when the line is not of that form.
    """
    try:
        text = line.decode("ascii").strip(_NOISE).removeprefix(prefix).strip(_NOISE)
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"a line with bytes that are no characters ({len(line)} bytes)") from error
    if not text or not text.isprintable():
        raise ProtocolViolation(f"a line without readable characters ({len(line)} bytes)")
    match form:
        case "text":
            return Reading(0, 0, text)
        case "hex":
            return _hex(text)
        case "decimal":
            return _decimal(text)
        case "wiegand26":
            return _wiegand26(text)


def _hex(text: str) -> Reading:
    if not all(character in "0123456789abcdefABCDEF" for character in text) or len(text) * 4 > LONGEST_BITS:
        raise ProtocolViolation("a line that is no hexadecimal number")
    return Reading(4 * len(text), int(text, 16), "")


def _decimal(text: str) -> Reading:
    if not (text.isdecimal() and len(text) <= 20 and int(text) < 1 << 64):
        raise ProtocolViolation("a line that is no decimal number")
    number = int(text)
    return Reading(32 if number < 1 << 32 else 64, number, text)


def _wiegand26(text: str) -> Reading:
    facility, _, number = text.partition(",") if "," in text else (text[:-5], "", text[-5:])
    facility, number = facility.strip(), number.strip()
    if not (
        facility.isdecimal() and number.isdecimal() and len(facility) == 3 and len(number) == 5
    ):  # a torn one is shorter
        raise ProtocolViolation("a line that is no facility (3 digits) and card number (5 digits)")
    if int(facility) > 0xFF or int(number) > 0xFFFF:
        raise ProtocolViolation("a facility above 255 or a card number above 65535")
    return Reading(26, _h10301(int(facility), int(number)), "")


def _h10301(facility: int, number: int) -> int:
    """Return the 26 bits: even parity over the first 12 data bits, the 24 data bits, odd parity over the last 12."""
    body = facility << 16 | number
    return (body >> 12).bit_count() % 2 << 25 | body << 1 | 1 - (body & 0xFFF).bit_count() % 2


class SerialReader:
    """A `drivers.contract.Reader` over lines of text.

    Such a reader sends nothing until it reads a card, so connected only means that its port is open.

    Args:
        device_id: the id that its reports carry.
        spec: the reader's line, which nothing else may use.
        terminator: the characters that end each line.
        prefix: characters before the card in each line; a line without them is taken too.
        form: the form of the card in a line; see `read_line`.
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
        self._was_mid_line = False

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

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
        """Report cards until the connection is lost, which raises LinkError.

        A line of text that the loss cuts in two is dropped, both halves: half a number may be another card's number.
        """
        splitter = LineSplitter(terminator=self._terminator, torn=self._was_mid_line or unsettled is not None)
        if unsettled is not None:
            self._take(splitter, unsettled, reports)
        try:
            while True:
                arrival = await next_arrival(connection, within=TORN_SECONDS if splitter.is_pending else None)
                if arrival is None:
                    splitter.end_of_silence()
                    self._refuse_dropped(reports)
                else:
                    self._take(splitter, arrival, reports)
        finally:
            self._was_mid_line = splitter.is_mid_line

    def _take(self, splitter: LineSplitter, arrival: Arrival, reports: Reports) -> None:
        before = splitter.dropped
        lines = splitter.feed(arrival.data)
        if splitter.dropped > before:
            self._refuse_dropped(reports)
        for line in lines:
            self._present(line, arrival.at, reports)

    def _refuse_dropped(self, reports: Reports) -> None:
        reason = "a line without its begin or its end, or one that is too long"
        reports(MessageRefused(self._device_id, reason, b"", self._monotonic()))

    def _present(self, line: bytes, at: MonotonicSeconds, reports: Reports) -> None:
        try:
            reading = read_line(line, form=self._form, prefix=self._prefix)
        except ProtocolViolation as violation:
            reports(MessageRefused(self._device_id, str(violation), line, at))
            return
        reports(CardPresented(self._device_id, reading.bit_length, reading.bits, reading.text, at))
