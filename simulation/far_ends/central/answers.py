"""Requests to the simulated central, and the envelopes of its answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from gateway.runtime.clock import Stamp
from simulation.far_ends.central.accounts import CentralSession

JsonObject = dict[str, JsonValue]
Body = TypeVar("Body", bound=BaseModel)

AUTHENTICATION_REQUIRED = "authentication required"


class Refusal(Exception):
    """A request is refused with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Call:
    """One authorised request."""

    raw: bytes
    session: CentralSession
    at: Stamp
    key: str = ""

    def body(self, model: type[Body]) -> Body:
        """Parse the request's body as a model. Raises Refusal (400) that names every fault."""
        return parse_body(self.raw, model)


def parse_body(raw: bytes, model: type[Body]) -> Body:
    """Parse a JSON body as a model. Raises Refusal (400) that names every fault."""
    try:
        parsed = json.loads(raw)
    except ValueError as error:
        raise Refusal(400, "the body is not JSON") from error
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)
        )
        raise Refusal(400, faults) from error


def failure(resource: str, message: str) -> JsonObject:
    """Make the envelope of a failure: the resource is null."""
    return {"success": False, resource: None, "error": message}


def success(resource: str, value: JsonValue) -> JsonObject:
    """Make the envelope of a single record."""
    return {"success": True, resource: value, "error": None}
