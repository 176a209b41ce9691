"""`edge-gateway cards`: access cards of the site, and questions about their numbers."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ConfigDict

from gateway.cli.card_numbers import explain_number
from gateway.cli.client import Answer, Gateway
from gateway.cli.printing import print_answers, print_json
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import ConfigError

cards = typer.Typer(
    name="cards",
    no_args_is_help=True,
    help="Find access cards, add and suspend them, and explain card numbers.\n\n"
    "Example: edge-gateway cards find Dupont",
)
cards.command("explain")(explain_number)
_PAGE = 200
_MOST_SHOWN = 2000
_PATH = "/v1/access"
_Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The card's id, as `cards find` shows it.")]


class CardShown(Answer):
    """A card. Further fields of central are kept for --json."""

    model_config = ConfigDict(extra="allow")

    id: int
    number: str | None = None
    plate: str | None = None
    holder_name: str | None = None
    username: str | None = None
    decided_as: str | None = None
    valid_from: str | int | None = None
    valid_until: str | int | None = None
    sync: str = "in_step"


class _Cards(Answer):
    access_cards: tuple[CardShown, ...]


class _Card(Answer):
    access_card: CardShown
    warnings: tuple[str, ...] = ()


@cards.command("find")
def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Part of a number, plate, holder or user name.")],
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Find cards by number, plate, holder or user name. The exit status is 1 when there is none.

    Example: edge-gateway cards find 00199573
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


@cards.command("add")
def add(
    *,
    number: Annotated[str, typer.Option("--number", help="The number printed on it.")] = "",
    plate: Annotated[str, typer.Option("--plate", help="The plate of the holder's vehicle.")] = "",
    holder: Annotated[str, typer.Option("--holder", help="The holder's name.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="DATE", help="The day or moment after which it ends.")] = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Add a card. It counts at once at this site, and central gets it.

    Example: edge-gateway cards add --number 00199573 --holder "A. Dupont" --until 2026-12-31
    """
    if not number and not plate:
        raise ConfigError("a card needs --number or --plate")
    fields = {"number": number, "plate": plate, "holder_name": holder, "valid_until": until}
    with connected(data, url) as gateway:
        told = gateway.asked(_PATH, {name: value for name, value in fields.items() if value}, method="PUT")
        _tell(gateway, told, as_json=as_json)


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


def _found(gateway: Gateway, text: str) -> list[CardShown]:
    """Return the cards with this text in number, plate, holder or user name, at most 2,000."""
    found: list[CardShown] = []
    while len(found) < _MOST_SHOWN:
        body = {"search": text, "page": len(found) // _PAGE + 1, "page_limit": _PAGE}
        page = gateway.answer_of(_Cards, f"{_PATH}/list", body).access_cards
        found += page
        if len(page) < _PAGE:
            break
    return found


def _tell(gateway: Gateway, told: bytes, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    answer = gateway.read(_Card, told)
    typer.echo(_line(answer.access_card))
    for warning in answer.warnings:
        typer.echo(f"    ! {warning}")


def _line(card: CardShown) -> str:
    who = card.holder_name or card.username or "no holder"
    what = ", ".join(f"{name} {value}" for name, value in (("number", card.number), ("plate", card.plate)) if value)
    validity = f", until {card.valid_until}" if card.valid_until else ""
    state = {"waiting": ", waits for central", "refused": ", refused by central"}.get(card.sync, "")
    return f"{card.id}  {who}: {what or 'no number'}, {card.decided_as or 'not usable'}{validity}{state}"
