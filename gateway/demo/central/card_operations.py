"""Access cards at the simulated central: found by username, their lifecycle, and how new ones are kept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gateway.demo.central.answers import Call, JsonObject, Refusal, success
from gateway.demo.central.bodies import Asked
from gateway.demo.central.tables import Tables
from gateway.runtime.clock import iso_utc


class ByUsername(Asked):
    """POST /v1/access/username."""

    username: str = Field(min_length=1)


class Lifecycle(Asked):
    """PATCH /v1/access/lifecycle."""

    id: int
    status: Literal["active", "suspended", "lost", "blocked", "expired"]
    reason: str = ""


def card_of_user(tables: Tables, call: Call) -> JsonObject:
    """The card of a username."""
    wanted = call.body(ByUsername).username.casefold()
    for card in tables.cards.values():
        if str(card.get("username", "")).casefold() == wanted:
            return success("access_card", card)
    raise Refusal(404, "access card not found")


def change_lifecycle(tables: Tables, call: Call) -> JsonObject:
    """Another status; a reason is kept beside it."""
    asked = call.body(Lifecycle)
    fields: JsonObject = {"status": asked.status, "updated_at": iso_utc(call.at.micros)}
    if "reason" in asked.model_fields_set:
        fields["reason"] = asked.reason
    return success("access_card", tables.cards.change(asked.id, fields))
