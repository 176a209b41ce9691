"""Access cards: read, written, and as a sheet."""

from __future__ import annotations

from gateway.web.catalogue.operation import XLSX, Operation, Rule, needs
from gateway.web.http.bodies import ById
from gateway.web.shapes.cards import (
    CardAnswer,
    CardBody,
    CardListBody,
    CardsAnswer,
    CardSheetBody,
    CardToDeviceBody,
    LifecycleBody,
    NewCardBody,
    UsernameBody,
)

_PATH = "/v1/access"
_CARD = "access_card"


def _cards(verb: str) -> Rule:
    return needs(f"can_{verb}_access_cards", f"can_{verb}_guests")


_VIEW = _cards("view")

ACCESS = Operation(
    "POST", _PATH, _VIEW, _CARD, purpose="One access card by its id", body=ById, answer=CardAnswer, reads=True
)
ACCESS_USERNAME = Operation(
    "POST",
    f"{_PATH}/username",
    _VIEW,
    _CARD,
    purpose="One access card by its username",
    body=UsernameBody,
    answer=CardAnswer,
    reads=True,
)
ACCESS_LIST = Operation(
    "POST",
    f"{_PATH}/list",
    _VIEW,
    "access_cards",
    purpose="List access cards",
    body=CardListBody,
    answer=CardsAnswer,
    reads=True,
)
ACCESS_EXCEL = Operation(
    "POST",
    f"{_PATH}/excel",
    _VIEW,
    "access_cards",
    purpose="Access cards as Excel",
    body=CardSheetBody,
    answer_type=XLSX,
    reads=True,
)
ACCESS_PUT = Operation(
    "PUT", _PATH, _cards("add"), _CARD, purpose="Create an access card", body=NewCardBody, answer=CardAnswer
)
ACCESS_PATCH = Operation(
    "PATCH", _PATH, _cards("edit"), _CARD, purpose="Update an access card", body=CardBody, answer=CardAnswer
)
ACCESS_LIFECYCLE = Operation(
    "PATCH",
    f"{_PATH}/lifecycle",
    needs("can_edit_access_cards"),
    _CARD,
    purpose="Update the lifecycle of an access card",
    body=LifecycleBody,
    answer=CardAnswer,
)
ACCESS_DELETE = Operation(
    "DELETE", _PATH, _cards("delete"), _CARD, purpose="Delete an access card", body=ById, answer=CardAnswer
)
ACCESS_DEVICE = Operation(
    "POST",
    f"{_PATH}/device",
    _VIEW & needs("can_control_devices"),
    _CARD,
    purpose="Send an access card to a device",
    body=CardToDeviceBody,
    answer=CardAnswer,
)

OPERATIONS: tuple[Operation, ...] = (
    ACCESS,
    ACCESS_USERNAME,
    ACCESS_LIST,
    ACCESS_EXCEL,
    ACCESS_PUT,
    ACCESS_PATCH,
    ACCESS_LIFECYCLE,
    ACCESS_DELETE,
    ACCESS_DEVICE,
)
