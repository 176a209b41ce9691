"""Access cards: what is asked and what is told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.domain.credentials import CardStatus
from gateway.web.bodies import Body, Id, Paged, Text
from gateway.web.shapes.answers import Answer, Listed
from gateway.web.shapes.devices import Line, Number, Word, Yes


def _moment(value: str) -> str:
    """Raises ValueError for what is no ISO 8601 moment or day; "" is no bound."""
    if value:
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError("must be an ISO 8601 date or date and time") from error
    return value


Moment = Annotated[str, Field(strict=True, max_length=40), AfterValidator(_moment)]
Seconds = Annotated[int, Field(strict=True, ge=0, le=10**14)]
NumberOrWord = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] | Word
Pin = Annotated[str, Field(strict=True, pattern=r"^([0-9]{4,8})?$")]


class CardListBody(Paged):
    """Which access cards; `search` looks in number, holder, username and plate."""

    search: Text = ""


class CardSheetBody(Body):
    """Which access cards; all without a search."""

    search: Text = ""


class UsernameBody(Body):
    """Whose access card."""

    username: Annotated[str, Field(strict=True, min_length=1, max_length=120)]


class CardFields(Body):
    """What is known of a card's fields; any other goes to central as it is. null takes a field's value away."""

    number: Word | None = None
    facility_code: NumberOrWord | None = None
    card_number: NumberOrWord | None = None
    card_format: Word | None = None
    uid: Word | None = None
    plate: Word | None = None
    type: Number | Word | None = None
    status: Word | None = None
    enabled: Yes | None = None
    username: Word | None = None
    holder_name: Word | None = None
    customer_id: Number | None = None
    company_id: Number | None = None
    valid_from: Moment | Seconds | None = None
    valid_until: Moment | Seconds | None = None
    pin: Pin | None = Field(default=None, repr=False)
    note: Line | None = None


class NewCardBody(CardFields):
    """An access card to be created."""


class CardBody(CardFields):
    """Which fields of an access card change."""

    id: Id


class LifecycleBody(Body):
    """Into which state an access card goes. Any state may follow any other."""

    id: Id
    status: CardStatus
    reason: Line | None = None


class CardToDeviceBody(Body):
    """Which access card goes to which device."""

    id: Id
    device_id: Id


class CardRecord(BaseModel):
    """An access card: central's record without its PIN, and what the site makes of it.

    Attributes:
        decided_as: the state by which the site decides.
        has_pin: whether the card has a PIN that lanes may ask for.
        sync: whether central has what the site has; `refused` comes with central's words in `sync_error`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int | None
    decided_as: CardStatus | None = None
    has_pin: bool = False
    sync: Literal["in_step", "waiting", "refused"] = "in_step"


class CardAnswer(Answer):
    """One access card. `warnings` tell why it will not open a gate as it is, or not yet."""

    access_card: CardRecord
    warnings: tuple[str, ...] = ()


class CardsAnswer(Listed):
    """Access cards, newest first."""

    access_cards: tuple[CardRecord, ...]
