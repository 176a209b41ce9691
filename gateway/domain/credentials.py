"""Credentials: what a reader reads, what a card is known by, and how the two meet.

`(bit_length, bits)` is the truth of a reading; the numbers printed on cards are aliases of it. An alias is a string
with its form in front, so that two forms of one number never meet by accident:

- `raw:26:1A2B3C4` - the exact bits, hexadecimal
- `h10301:1:11572` - facility and card number of the 26-bit format H10301
- `text:0011572` - the characters that a text reader sent, trimmed and upper-cased
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

H10301_BITS = 26
MAX_TEXT = 128


class CardStatus(StrEnum):
    """What the card list says of a card."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    LOST = "lost"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Credential:
    """One reading: bits, or text when the reader gives characters (`bit_length` 0)."""

    bit_length: int = 0
    bits: int = 0
    text: str = ""

    def aliases(self) -> tuple[str, ...]:
        """Every alias that this reading may be listed under, the most exact first."""
        return tuple(_aliases(self))

    def shown(self) -> str:
        """How technicians see this reading, as it is printed where the format is known; never the key of anything."""
        if self.bit_length == 0:
            return self.text.strip()
        if self.bit_length == H10301_BITS and has_h10301_parity(self.bits):
            facility, number = h10301_numbers(self.bits)
            return f"{facility:03d},{number:05d}"
        return f"{self.bit_length} bits {self.bits:X}"


@dataclass(frozen=True, slots=True)
class Card:
    """An access card as decisions need it.

    Attributes:
        card_id: central's id, or a provisional one.
        number: the printed number, for people.
        status: what the list says.
        valid_from: first microsecond (UTC) of validity, or None for no lower bound.
        valid_until: first microsecond (UTC) no longer valid, or None for no upper bound.
        holder: the name shown to technicians; "" when unknown.
        aliases: what the card answers to; see the module's text.
    """

    card_id: int
    number: str
    status: CardStatus = CardStatus.ACTIVE
    valid_from: int | None = None
    valid_until: int | None = None
    holder: str = ""
    aliases: tuple[str, ...] = ()


def text_alias(text: str) -> str:
    """The alias of characters as sent or printed; case and outer blanks do not count."""
    return f"text:{text.strip().upper()}"


def h10301_alias(facility: int, number: int) -> str:
    """The alias of a 26-bit H10301 card: facility 0..255, number 0..65535."""
    return f"h10301:{facility}:{number}"


def has_h10301_parity(bits: int) -> bool:
    """Whether 26 bits carry H10301's parity: even over the first 13, odd over the last 13."""
    return (bits >> 13).bit_count() % 2 == 0 and (bits & 0x1FFF).bit_count() % 2 == 1


def h10301_bits(facility: int, number: int) -> int:
    """The 26 bits of an H10301 card, parity included."""
    body = (facility & 0xFF) << 16 | (number & 0xFFFF)
    even = (body >> 12).bit_count() % 2
    odd = 1 - (body & 0xFFF).bit_count() % 2
    return even << 25 | body << 1 | odd


def h10301_numbers(bits: int) -> tuple[int, int]:
    """Facility and card number of 26 bits in the format H10301."""
    return bits >> 17 & 0xFF, bits >> 1 & 0xFFFF


def _aliases(credential: Credential) -> Iterator[str]:
    if credential.bit_length:
        yield f"raw:{credential.bit_length}:{credential.bits:X}"
        if credential.bit_length == H10301_BITS and has_h10301_parity(credential.bits):
            yield h10301_alias(*h10301_numbers(credential.bits))
    if credential.text.strip():
        yield text_alias(credential.text)
