"""Request bodies as models: unknown fields are ignored, null counts as absent, and an error names its field."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from aiohttp import web
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from drivers.settings import following
from gateway.domain.errors import NotFoundError
from gateway.domain.validation_messages import words_of_first
from gateway.texts import text
from gateway.web.http.errors import RequestRefused

LARGEST_BODY = 1024 * 1024
LARGEST_ID = 2**63 - 1
LARGEST_RECORD = 64 * 1024
MOST_VALUES = 10_000
"""The most values in one body. Parsing blocks the loop: at most 5 ms for this number, 150 ms for 1 MiB of values."""
_READ_SECONDS = 15.0
_LARGEST_PAGE = 1_000_000_000
_CAP = 500
_NOT_BLANK = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"
_PATH_ID = re.compile(r"[0-9]{1,19}")


def _without_nul(value: str) -> str:
    """Refuse U+0000 (ValueError): databases, central's among them, cannot keep or search it."""
    if "\x00" in value:
        raise ValueError("must not hold the character U+0000")
    return value


Fields = dict[str, JsonValue]
Id = Annotated[int, Field(strict=True, ge=0, le=LARGEST_ID)]
Plain = Annotated[str, Field(strict=True, json_schema_extra={"pattern": "^[^\\u0000]*$"}), AfterValidator(_without_nul)]
"""Text of any length, without U+0000. Bounded types derive from it."""
Text = Annotated[Plain, Field(max_length=1000)]
Line = Annotated[Plain, Field(max_length=1000)]
Word = Annotated[Plain, Field(max_length=120)]
Number = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Yes = Annotated[bool, Field(strict=True)]
Name = Annotated[
    Plain, Field(min_length=1, json_schema_extra={"pattern": _NOT_BLANK}), following(_NOT_BLANK, "must not be blank")
]
ShortName = Annotated[Name, Field(max_length=120)]
"""A name of at most 120 characters that is not blank."""
M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """Base of request bodies."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class WriteBody(Body):
    """Base of bodies that write a record. `null_means` maps each field that null clears to the value that it then has.

    For any other field, null counts as absent.
    """

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType({})
    _besides: Fields = PrivateAttr(default_factory=dict)

    @property
    def fields(self) -> Fields:
        """The fields to write, without `id`: those that were sent, as the model has them.

        For a change, unchanged fields are among them as they were sent, and cleared ones as `null_means` has them.
        """
        return {**self._besides, **self.model_dump(mode="json", exclude_unset=True, exclude={"id"})}

    def with_fields(self, besides: Fields) -> Self:
        """Add fields to write that are not to be validated. Raises RequestRefused for a record that is too large."""
        self._besides = besides
        if len(json.dumps(self.fields, ensure_ascii=False).encode()) > LARGEST_RECORD:
            raise RequestRefused(400, f"body: a record has at most {LARGEST_RECORD // 1024} KiB")
        return self


W = TypeVar("W", bound=WriteBody)


class ById(Body):
    """A record by its id."""

    id: Id


class Paged(Body):
    """A page of a list. `page_limit` is capped at 500 for every list."""

    page: Annotated[int, Field(strict=True, ge=1, le=_LARGEST_PAGE)] = 1
    page_limit: Annotated[int, Field(strict=True, ge=1)] = 25

    @property
    def limit(self) -> int:
        """The largest number of records."""
        return min(self.page_limit, _CAP)

    @property
    def offset(self) -> int:
        """The number of records to skip."""
        return (self.page - 1) * self.limit


class Cursored(Paged):
    """A page of a list that has cursors: a cursor above 0 takes precedence over `page`."""

    search: Text = ""
    cursor_id: Id = 0

    @property
    def offset(self) -> int:
        """The number of records to skip; 0 after a cursor."""
        return 0 if self.cursor_id else super().offset


async def read_body(request: web.Request, model: type[M]) -> M:
    """Parse the request's body. An empty body counts as `{}`; unknown fields are ignored.

    Raises RequestRefused with the first error.
    """
    wanted = validated(await _read_object(request), model)
    return wanted.with_fields({}) if isinstance(wanted, WriteBody) else wanted


class SentChange(Generic[W]):
    """A change of an existing record: the fields as they were sent, and the record's `id`."""

    def __init__(self, sent: Fields, model: type[W]) -> None:
        self.id = validated(sent, ById).id
        self._sent = sent
        self._model = model

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that were sent."""
        return frozenset(self._sent)

    def leaves(self, name: str, known: Mapping[str, object]) -> bool:
        """Return whether a sent field has the same value as in the record."""
        return _same(self._sent[name], known.get(name))

    def to(self, known: Mapping[str, object]) -> W:
        """Return the change of this record, which is as clients get it.

        Clients may change one field and send the whole record back as they got it. So fields that the model does not
        have are ignored, and fields whose value is unchanged are not validated: that value came from central.

        Raises RequestRefused with the first error.
        """
        fields, null_means = self._model.model_fields, self._model.null_means
        sent = {name: value for name, value in self._sent.items() if name in fields and name != "id"}
        as_it_was = {name: value for name, value in sent.items() if name in known and _same(value, known[name])}
        judged = {name: value for name, value in sent.items() if name not in as_it_was}
        besides: Fields = {name: value for name, value in as_it_was.items() if value is not None}
        besides |= {name: null_means[name] for name, value in judged.items() if value is None and name in null_means}
        return validated({**judged, "id": self.id}, self._model).with_fields(besides)


async def read_change(request: web.Request, model: type[W]) -> SentChange[W]:
    """Parse a change of a record. Raises RequestRefused."""
    return SentChange(await _read_object(request), model)


def _same(one: object, other: object) -> bool:
    """Return whether two values are equal as JSON. In Python 1 == True; in JSON they differ."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


async def _read_object(request: web.Request) -> Fields:
    """Read the request's body as a JSON object. An empty body counts as `{}`."""
    return _object(await read_bytes(request))


def _object(raw: bytes) -> Fields:
    if len(raw) > MOST_VALUES and sum(raw.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise RequestRefused(400, f"the body holds more than {MOST_VALUES} values")
    try:
        data = from_json(raw, allow_inf_nan=False) if raw.strip() else {}
    except ValueError as error:
        raise RequestRefused(400, "the body is not JSON") from error
    if not isinstance(data, dict):
        raise RequestRefused(400, "the body must be a JSON object")
    return data


def validated(data: object, model: type[M]) -> M:
    """Validate the sent fields as a model. Raises RequestRefused with the first error."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise RequestRefused(400, words_of_first(error)) from error


def read_query(request: web.Request, model: type[M]) -> M:
    """Parse the request's query. Blank values count as absent; the last of repeated names counts.

    Raises RequestRefused with the first error.
    """
    try:
        return model.model_validate({name: value for name, value in request.query.items() if value.strip()})
    except ValidationError as error:
        raise RequestRefused(400, words_of_first(error)) from error


async def read_text(request: web.Request) -> str:
    """Read the request's body as text. Raises RequestRefused."""
    try:
        return (await read_bytes(request)).decode()
    except UnicodeDecodeError as error:
        raise RequestRefused(400, "the body is not UTF-8 text") from error


def path_id(request: web.Request) -> int:
    """Return the `{id}` of the path. Raises NotFoundError for a text that cannot be an id."""
    written = request.match_info["id"]
    if not _PATH_ID.fullmatch(written) or int(written) > LARGEST_ID:
        raise NotFoundError(text("refused.record_unknown"))
    return int(written)


async def read_bytes(request: web.Request) -> bytes:
    """Return the request's body. Raises RequestRefused: 408 after 15 s, 400 if it broke off; 413 over 1 MiB."""
    if (request.content_length or 0) > LARGEST_BODY:
        raise web.HTTPRequestEntityTooLarge(max_size=LARGEST_BODY, actual_size=request.content_length or 0)
    try:
        if request.content.is_eof():  # all of it has arrived
            return await request.read()
        async with asyncio.timeout(_READ_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise RequestRefused(408, text("refused.body_late")) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise RequestRefused(400, text("refused.body_broke_off")) from error
