"""`edge-gateway cards`: access cards of the site, and questions about their numbers."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from pydantic import JsonValue

from gateway.cli.client import RunningGatewayClient
from gateway.cli.printing import print_answers, print_json
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.credentials import Credential
from gateway.domain.errors import ConfigError
from gateway.domain.printed import MOST_BITS, Fit, Meaning, explain, fields_of_bits, listed_aliases, meanings
from gateway.web.answers import CardAnswer, CardRecord, CardsAnswer

cards = typer.Typer(
    name="cards",
    no_args_is_help=True,
    help="Find, add, change and suspend access cards, and explain card numbers.\n\n"
    "Example: edge-gateway cards find Dupont",
)
_PAGE = 200
_MOST_SHOWN = 2000
_PATH = "/v1/access"
_OPTIONS = {"number": "number", "uid": "uid", "card_format": "format"}
_Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The card's id, as `cards find` shows it.")]


class CardShown(CardRecord):
    """A card, with the fields of central that are printed."""

    number: str | None = None
    plate: str | None = None
    holder_name: str | None = None
    username: str | None = None
    valid_from: str | int | None = None
    valid_until: str | int | None = None


class _Cards(CardsAnswer):
    access_cards: tuple[CardShown, ...]


class _SentCard(CardAnswer):
    access_card: CardShown


@cards.command("find")
def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Part of a number, plate, holder or user name.")],
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Find cards by number, plate, holder or user name. The exit status is 1 when there is none.

    Example: edge-gateway cards find 001,11572
    """
    with connected(data, url) as gateway:
        found = _found(gateway, text)
    if as_json:
        print_answers(found)
    else:
        for card in found:
            typer.echo(_line(card))
    if not found:
        typer.echo(f"no card has {text!r} in its number, plate or name", err=True)
        raise typer.Exit(1)


@cards.command("show")
def show(card: _Id, data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show one card: how the site decides for it, and why it will not open a gate as it is.

    Example: edge-gateway cards show 4001
    """
    with connected(data, url) as gateway:
        told = gateway.asked(_PATH, {"id": card})
        _tell(gateway, told, as_json=as_json)


_Number = Annotated[
    str, typer.Option("--number", help="The number printed on it, with its facility where that is printed.")
]
_Layout = Annotated[
    str, typer.Option("--format", metavar="NAME", help="The card's format, such as H10302, if it is known.")
]
_Uid = Annotated[str, typer.Option("--uid", metavar="HEX", help="The tag's own number in hexadecimal.")]
_Plate = Annotated[str, typer.Option("--plate", help="The plate of the holder's vehicle.")]
_Holder = Annotated[str, typer.Option("--holder", help="The holder's name.")]
_Until = Annotated[str, typer.Option("--until", metavar="DATE", help="The day or moment after which it ends.")]


@cards.command("add")
def add(
    *,
    number: _Number = "",
    layout: _Layout = "",
    uid: _Uid = "",
    plate: _Plate = "",
    holder: _Holder = "",
    until: _Until = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Add a card. It counts at once at this site, and central gets it.

    A number of plain digits can mean several cards. If no reader of the site can send it, the answer says so and offers
    what it may mean.

    Example: edge-gateway cards add --number 001,11572 --holder "A. Dupont" --until 2026-12-31
    """
    if not number and not plate and not uid:
        raise ConfigError("a card needs --number, --uid or --plate")
    body = _given(number=number, card_format=layout, uid=uid, plate=plate, holder_name=holder, valid_until=until)
    with connected(data, url) as gateway:
        _tell(gateway, gateway.asked(_PATH, body, method="PUT"), as_json=as_json)


@cards.command("edit")
def edit(
    card: _Id,
    *,
    number: _Number = "",
    layout: _Layout = "",
    uid: _Uid = "",
    plate: _Plate = "",
    holder: _Holder = "",
    until: _Until = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Change fields of a card. Those that no option gives stay as they are.

    Example: edge-gateway cards edit 4001 --number 003,02965
    """
    body = _given(number=number, card_format=layout, uid=uid, plate=plate, holder_name=holder, valid_until=until)
    if not body:
        raise ConfigError("nothing to change: give an option, such as --number")
    with connected(data, url) as gateway:
        _tell(gateway, gateway.asked(_PATH, {"id": card, **body}, method="PATCH"), as_json=as_json)


def _given(**fields: str) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value}


@cards.command("suspend")
def suspend(
    card: _Id,
    reason: Annotated[str, typer.Option("--reason", help="Why, for central.")] = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Suspend a card: it opens no gate until `cards resume`.

    Example: edge-gateway cards suspend 4001 --reason "lost"
    """
    _set_status(card, "suspended", reason, data=data, url=url, as_json=as_json)


@cards.command("resume")
def resume(card: _Id, data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Let a suspended card count again.

    Example: edge-gateway cards resume 4001
    """
    _set_status(card, "active", "", data=data, url=url, as_json=as_json)


def _set_status(card: int, status: str, reason: str, *, data: Data, url: Url, as_json: bool) -> None:
    body = {"id": card, "status": status} | ({"reason": reason} if reason else {})
    with connected(data, url) as gateway:
        _tell(gateway, gateway.asked(f"{_PATH}/lifecycle", body, method="PATCH"), as_json=as_json)


def _found(gateway: RunningGatewayClient, text: str) -> list[CardShown]:
    """Return the cards with this text in number, plate, holder or user name, at most 2,000."""
    found: list[CardShown] = []
    while len(found) < _MOST_SHOWN:
        body = {"search": text, "page": len(found) // _PAGE + 1, "page_limit": _PAGE}
        page = gateway.answer_of(_Cards, f"{_PATH}/list", body).access_cards
        found += page
        if len(page) < _PAGE:
            break
    return found


def _tell(gateway: RunningGatewayClient, told: bytes, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    answer = gateway.read(_SentCard, told)
    typer.echo(_line(answer.access_card))
    for warning in answer.warnings:
        typer.echo(f"    ! {warning}")


def _line(card: CardShown) -> str:
    who = card.holder_name or card.username or "no holder"
    what = ", ".join(f"{name} {value}" for name, value in (("number", card.number), ("plate", card.plate)) if value)
    validity = f", until {card.valid_until}" if card.valid_until else ""
    state = {"waiting": ", waits for central", "refused": ", refused by central"}.get(card.sync, "")
    return f"{card.id}  {who}: {what or 'no number'}, {card.decided_as or 'not usable'}{validity}{state}"


@cards.command("explain")
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
    it lists what the number may mean and which bits a reader would send. Where the number alone could mean other cards
    too, it says how to enter the card, so that the lane knows it. Exit status 1 when nothing fits.

    Example: edge-gateway cards explain 001,11572 --read 00000000100101101001101001

    Example: edge-gateway cards explain 1EA68671 --read 0x7186A61E --length 32
    """
    if read is None:
        found = tuple(meanings(number))
        for meaning in found:
            typer.echo(_meant(meaning) + _entered(number, meaning.reading()))
    else:
        bit_length, bits = _bits(read, length)
        fits = explain(number, bit_length, bits)
        for fit in fits:
            typer.echo(_fitted(fit) + _entered(number, Credential(fit.bit_length, fit.bits)))
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


def _entered(number: str, reading: Credential | None) -> str:
    """Say how to enter a card that answers to the reading, unless its number does so as it is typed."""
    if reading is None or set(reading.aliases()) & set(listed_aliases(number, None)):
        return ""
    fields = fields_of_bits(reading.bit_length, reading.bits)
    if "facility_code" in fields:
        fields = {"number": f"{fields['facility_code']},{fields['card_number']}", "card_format": fields["card_format"]}
    words = " ".join(f"--{_OPTIONS[name]} {value}" for name, value in fields.items())
    return f"; the lane knows it as: cards add {words}" if words else "; no card can be entered for these bits"


def _format_name(meaning: Meaning) -> str:
    layout = meaning.layout
    return f"{layout.bit_length} bits {layout.name.upper()}" if layout else ""
