"""`edge-gateway cards explain`: how the number printed on a card and the bits of its reading belong together."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from gateway.domain.errors import ConfigError
from gateway.domain.explain import Fit, Meaning, explain, meanings
from gateway.domain.reader_bits import MOST_BITS


def explain_number(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="The number printed on the card.", show_default=False)
    ],
    read: Annotated[
        str | None,
        typer.Option("--read", metavar="BITS", help="The bits that the reader read: 0 and 1, or hexadecimal after 0x."),
    ] = None,
    length: Annotated[int | None, typer.Option("--length", help="The number of bits, for hexadecimal.")] = None,
) -> None:
    """Find the format, bit order and shift by which a printed number matches what a reader read.

    Present the card once, take the bits from its event on the status page, and type what the card says. Without --read
    it lists what the number may mean and which bits a reader would send. Exit status 1 when nothing fits.

    Example: edge-gateway cards explain 001,11572 --read 00000000100101101001101001

    Example: edge-gateway cards explain 1EA68671 --read 0x7186A61E --length 32
    """
    if read is None:
        found = tuple(meanings(number))
        for meaning in found:
            typer.echo(_meant(meaning))
    else:
        bit_length, bits = _bits(read, length)
        fits = explain(number, bit_length, bits)
        for fit in fits:
            typer.echo(_fitted(fit))
        found = tuple(fit.meaning for fit in fits)
    if not found:
        typer.echo(f"no known format makes {number} fit" + ("" if read is None else " the bits that were read"))
        if read is not None and length is None and not re.fullmatch(r"(0[bB])?[01\s_]+", read):
            bit_count = _bits(read, None)[0]
            typer.echo(
                f"{read} counts as {bit_count} bits: if the reader sent more, give their number, such as --length 26"
            )
        raise typer.Exit(1)


def _bits(read: str, length: int | None) -> tuple[int, int]:
    text = re.sub(r"[\s_]", "", read)
    if length is not None and not 0 < length <= MOST_BITS:
        raise ConfigError(f"--length must be 1 to {MOST_BITS} bits")
    if re.match("0[bB]", text):
        text = text[2:]
        if not re.fullmatch(r"[01]+", text) or length not in (None, len(text)):
            raise ConfigError(f"--read {read}: after 0b come zeros and ones, as many as --length says")
    if re.fullmatch(r"[01]+", text) and length in (None, len(text)):
        bit_length, bits = len(text), int(text, 2)
    elif re.fullmatch(r"(0[xX])?[0-9A-Fa-f]+", text):
        digits = text.lower().removeprefix("0x")
        bit_length, bits = length or 4 * len(digits), int(digits, 16)
    else:
        raise ConfigError("--read takes zeros and ones, or hexadecimal after 0x")
    if not 0 < bit_length <= MOST_BITS or bits >> bit_length:
        raise ConfigError(f"--length {bit_length} is not the length of what was read (1 to {MOST_BITS} bits)")
    return bit_length, bits


def _meant(meaning: Meaning) -> str:
    layout = meaning.layout
    if layout is None:
        length = f" in {meaning.bit_length} bits" if meaning.bit_length else ""
        return f"{meaning.said}{length}: 0x{meaning.number:X}"
    if meaning.facility is None:
        return f"{meaning.said}, {_format_name(meaning)}"
    bits = layout.build(meaning.facility, meaning.number)
    return f"{meaning.said}, {_format_name(meaning)}: {bits:0{layout.bit_length}b}"


def _fitted(fit: Fit) -> str:
    meaning, way = fit.meaning, fit.way.setting()
    facility = ""
    if meaning.layout is not None and meaning.facility is None and meaning.layout.facility_bits:
        facility = f" (facility {meaning.layout.numbers(fit.bits)[0]})"
    how = f"with {way} at the reader in the site file" if way else "as the reader sends it"
    return f"{meaning.said}{facility}, {_format_name(meaning) or f'{fit.bit_length} bits'}: {how}"


def _format_name(meaning: Meaning) -> str:
    layout = meaning.layout
    return f"{layout.bit_length} bits {layout.name.upper()}" if layout else ""
