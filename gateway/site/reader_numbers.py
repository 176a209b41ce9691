"""The numbers that a site's readers can send, and advice for a card that none of them can. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from drivers.device import Device, ReaderDevice
from drivers.osdp.section import OsdpReaderDevice
from drivers.serial_line.card_lines import Form
from drivers.serial_line.section import SerialReaderDevice
from gateway.domain.credentials import Card, Credential
from gateway.domain.printed import MOST_BITS, fields_of_bits, meanings
from gateway.domain.wiegand import FORMATS
from gateway.site.models import Site

_LENGTHS = {layout.name: layout.bit_length for layout in FORMATS}
_MOST_OFFERED = 3
_SERIAL_LENGTHS: Mapping[Form, Iterable[int]] = {
    "text": (),
    "hex": range(4, MOST_BITS + 1, 4),
    "decimal": (32, 64),
    "wiegand26": (26,),
}
"""The numbers of bits that a line of each form gives."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """The aliases that a reader's readings can have.

    Attributes:
        lengths: the numbers of bits of its readings, as on the card.
        digits: whether it sends plain digits as characters.
        texts: whether it sends other characters.
        plates: whether it sends plates.
    """

    lengths: frozenset[int] = frozenset()
    digits: bool = False
    texts: bool = False
    plates: bool = False

    def has(self, alias: str) -> bool:
        """Return whether a reading can have this alias."""
        form, _, value = alias.partition(":")
        match form:
            case "text" | "exact" | "digits":
                if not value.isascii():  # readers send ASCII alone
                    return False
                return self.digits if value.isdigit() else self.texts
            case "plate":
                return self.plates
            case "raw":
                return int(value.partition(":")[0]) in self.lengths
            case _:
                return _LENGTHS.get(form) in self.lengths


def doubts_of_number(card: Card, site: Site) -> Iterator[str]:
    """Yield a warning if no reader of the site can send the card's number or plate as it is listed.

    It offers the meanings of the number that a reader can send.
    """
    readers = tuple(sent for device in site.devices if (sent := _sent_by(device)) is not None)
    if not readers or not card.aliases or any(reader.has(alias) for reader in readers for alias in card.aliases):
        return
    shown = card.number or "this card"
    sendable = [
        reading
        for meaning in meanings(card.number)
        if (reading := meaning.reading()) is not None
        and any(reader.has(alias) for reader in readers for alias in reading.aliases())
    ]
    offered = " / ".join(list(dict.fromkeys(filter(None, map(_entered, sendable))))[:_MOST_OFFERED])
    if offered:
        yield f"no reader of this site can send {shown} as it is: enter it as {offered} if that is what it means"
    else:
        yield f"no reader of this site can send {shown}: compare it with what the reader sends when the card is shown"


def _entered(reading: Credential) -> str:
    """Write the number under which a card answers to a reading, and its format where it needs one; "" for none."""
    fields = fields_of_bits(reading.bit_length, reading.bits)
    pair = f"{fields['facility_code']},{fields['card_number']}" if "facility_code" in fields else ""
    number = fields.get("number") or fields.get("uid") or pair
    return " ".join(filter(None, (number, fields.get("card_format"))))


def _sent_by(device: Device) -> _Sent | None:
    """Return what a device sends, None if it is no reader."""
    if isinstance(device, SerialReaderDevice):
        return _Sent(
            lengths=frozenset(length - device.bits.added for length in _SERIAL_LENGTHS[device.form]),
            digits=device.form in {"text", "decimal"},
            texts=device.form == "text",
        )
    if isinstance(device, OsdpReaderDevice):
        # It may send characters too, but none does so for a card with a number of plain digits.
        return _Sent(lengths=frozenset(range(1, MOST_BITS + 1)), texts=True)
    if not isinstance(device, ReaderDevice):
        return None
    if device.reads_plates:
        return _Sent(plates=True)
    return _Sent(lengths=frozenset(range(1, 2 * MOST_BITS + 1)), digits=True, texts=True)  # it may send anything
