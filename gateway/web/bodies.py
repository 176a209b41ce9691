"""Request bodies as models: unknown fields are passed over, null is as good as absent, and a fault names its field."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import from_json

from gateway.domain.errors import NotFoundError
from gateway.web.errors import RequestRefused

PUBLISHED = web.RequestKey("published", type)
"""The model that the operation's description names for the body; nothing is validated with another one."""
LARGEST_BODY = 1024 * 1024
LARGEST_ID = 2**63 - 1
_READ_SECONDS = 15.0
_LARGEST_PAGE = 1_000_000_000
_CAP = 500
_IS_NAME = re.compile(r"\w+")
_KINDS = frozenset({"int", "str", "float", "bool"})  # which of several kinds a value was tried as
_PATH_ID = re.compile(r"[0-9]{1,19}")

Id = Annotated[int, Field(strict=True, ge=0, le=LARGEST_ID)]
Text = Annotated[str, Field(strict=True, max_length=1000)]
M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """Base of request bodies."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class ById(Body):
    """A record by its id."""

    id: Id


class Paged(Body):
    """Which part of a list. `page_limit` is capped at 500 for every list."""

    page: Annotated[int, Field(strict=True, ge=1, le=_LARGEST_PAGE)] = 1
    page_limit: Annotated[int, Field(strict=True, ge=1)] = 25

    @property
    def limit(self) -> int:
        """How many records at most."""
        return min(self.page_limit, _CAP)

    @property
    def offset(self) -> int:
        """How many to pass over."""
        return (self.page - 1) * self.limit


class Cursored(Paged):
    """Which part of a list that has cursors: a cursor above 0 goes before the page."""

    search: Text = ""
    cursor_id: Id = 0

    @property
    def offset(self) -> int:
        """How many to pass over; none after a cursor."""
        return 0 if self.cursor_id else super().offset


async def read_body(request: web.Request, model: type[M]) -> M:
    """The request's body. An empty one counts as `{}`. Raises RequestRefused with the first fault."""
    if request.get(PUBLISHED, model) is not model:
        raise AssertionError(f"{model.__name__} is not what the interface's description says")
    return (await read_record(request, model))[0]


async def read_record(request: web.Request, model: type[M]) -> tuple[M, dict[str, JsonValue]]:
    """The request's body as a model, and whole: fields that the model does not know are central's to judge.

    An empty body counts as `{}`. Raises RequestRefused with the first fault.
    """
    raw = await _read(request)
    try:
        data = from_json(raw, allow_inf_nan=False) if raw.strip() else {}
    except ValueError as error:
        raise RequestRefused(400, "the body is not JSON") from error
    if not isinstance(data, dict):
        raise RequestRefused(400, "the body must be a JSON object")
    return validated(data, model), data


def validated(data: object, model: type[M]) -> M:
    """What was sent, as a model. Raises RequestRefused with the first fault."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise RequestRefused(400, _sentence(error)) from error


def without_id(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A new record's fields: its id is not the caller's to say."""
    return {name: value for name, value in body.items() if name != "id"}


def read_query(request: web.Request, model: type[M]) -> M:
    """The request's query as a model; of a name that comes twice the last counts. Raises RequestRefused."""
    try:
        return model.model_validate({name: value for name, value in request.query.items() if value.strip()})
    except ValidationError as error:
        raise RequestRefused(400, _sentence(error)) from error


async def read_text(request: web.Request) -> str:
    """The request's body as text. Raises RequestRefused."""
    try:
        return (await _read(request)).decode()
    except UnicodeDecodeError as error:
        raise RequestRefused(400, "the body is not UTF-8 text") from error


def path_id(request: web.Request) -> int:
    """The `{id}` of the path. Raises NotFoundError for what can be no id."""
    text = request.match_info["id"]
    if not _PATH_ID.fullmatch(text) or int(text) > LARGEST_ID:
        raise NotFoundError("there is no record with this id")
    return int(text)


async def _read(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_READ_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise RequestRefused(408, "the body did not come in time") from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise RequestRefused(400, "the body broke off") from error


def _sentence(error: ValidationError) -> str:
    """The first fault with its place; never the value, which may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in _KINDS and _IS_NAME.fullmatch(str(part)))
    said = (
        first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").replace("a valid tuple", "an array")
    )
    wanted = f"must be {said}" if first["msg"].startswith("Input should be ") else said
    return f"{place}: {'is missing' if first['type'] == 'missing' else wanted}"
