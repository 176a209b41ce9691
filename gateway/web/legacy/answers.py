"""What answers of the legacy family have in common."""

from __future__ import annotations

import re

from aiohttp import web
from pydantic import BaseModel

from gateway.domain.errors import NotFoundError
from gateway.web.http.bodies import LARGEST_ID
from gateway.web.http.envelope import as_json

_NUMBER = re.compile(r"[0-9]{1,19}")


def told(answer: BaseModel, *, status: int = 200) -> web.Response:
    """A success: the model itself, without an envelope."""
    return as_json(dict(answer), status=status)


def number_of(text: str, what: str) -> int:
    """The number that an id's text means. Raises NotFoundError for what can be none."""
    plain = text.strip()
    if not _NUMBER.fullmatch(plain) or int(plain) > LARGEST_ID:
        raise NotFoundError(f"there is no {what} '{plain[:40]}'")
    return int(plain)
