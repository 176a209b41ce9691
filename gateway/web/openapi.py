"""The interface as OpenAPI 3.1, made from the catalogue and the models that validate requests; and its operation."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache

from aiohttp import web
from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema, core_schema, to_json

from gateway.domain.events import EventKind
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.files import unless_known
from gateway.web.operation import FORM, JSON, MULTIPART, OPEN, Operation
from gateway.web.relayed.rows import RelayedFields, RelayedRefusal, RelayedUpload, SamlResponseForm


class JsonSchemas(GenerateJsonSchema):
    """A generator of schemas without field titles, and with names for the values of numeric enumerations.

    Client generators would make a separate type of every field that has a title.
    """

    def field_title_should_be_set(self, schema: CoreSchema | core_schema.ModelField) -> bool:  # noqa: ARG002
        """Leave fields without titles."""
        return False

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Add the names of the values of a numeric enumeration."""
        made = super().enum_schema(schema)
        if issubclass(schema["cls"], IntEnum):
            made |= _names(schema["cls"])
        return made


def _names(numbers: type[IntEnum]) -> Mapping[str, list[str]]:
    names = {"x-enum-varnames": [number.name for number in numbers]}
    if issubclass(numbers, EventKind):
        names["x-enum-descriptions"] = [kind.label for kind in numbers]
    return names


Schema = dict[str, JsonValue]
_REF = "#/components/schemas/{model}"
_LEGACY = "/api/"
_SESSION: list[JsonValue] = [{"SessionID": []}, {"Bearer": []}, {"Cookie": []}]
_SECURITY: Schema = {
    "SessionID": {"type": "apiKey", "in": "header", "name": "SessionID", "description": "The session's token."},
    "Bearer": {"type": "http", "scheme": "bearer", "description": "The session's token."},
    "Cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "session",
        "description": "The session's token. A page of another origin may not use it.",
    },
    "ViewToken": {
        "type": "apiKey",
        "in": "query",
        "name": "token",
        "description": "The token in an address that a camera's or camera event's record names; for players.",
    },
    "ApiKey": {"type": "http", "scheme": "bearer", "description": "An API key, of the family under /api/v1 alone."},
}
_REFUSALS = """
A failure is `{success: false, <resource>: null, error}`; under `/api/v1` it is `{error}`:

| Status | What it says |
|---|---|
| 400 | something sent is not as it should be; the error names it |
| 401 | the API key is missing or not accepted |
| 403 | the caller is known, and this is not for it |
| 404 | there is no such record; of a sign-in: it is not accepted |
| 406, 412, 422, 428 | of live viewing: as WHEP has it |
| 408 | the body did not come in time |
| 409 | it may not be carried out now |
| 413, 415 | the body is too large, or of another type than is taken |
| 429 | too many refused sign-ins |
| 500 | authentication is required, or a permission is missing; or an unexpected error, with a reference |
| 502 | central refused, or was lost before its answer was whole |
| 503, 504 | it cannot be served now, or not in time |
"""
_FILE: Schema = {"type": "string", "format": "binary"}
_TO_CENTRAL: Mapping[str, type[BaseModel]] = {JSON: RelayedFields, FORM: SamlResponseForm, MULTIPART: RelayedUpload}
_RELAYED = (
    "Central's refusal, as it is. Without an answer of central's, the gateway refuses in the envelope: 400, 403, 404, "
    "408, 413, 500, 502, 503, 504."
)
_TITLE = "Site operations"
_LABEL = "2.0.0"


def described(operations: Iterable[Operation], *, release: str) -> Schema:
    """Build the OpenAPI document.

    Args:
        operations: the operations to describe; OPTIONS are left out, because only browsers use them.
        release: the gateway's version. The version of the interface is a constant.
    """
    shown = [item for item in operations if item.method != "OPTIONS"]
    names, schemas = _schemas(shown)
    paths: dict[str, JsonValue] = {}
    for item in shown:
        there = paths.setdefault(item.path, {})
        if isinstance(there, dict):
            there[item.method.lower()] = _operation(item, names)
    relayed_refusal: Schema = {JSON: {"schema": _ref(names[RelayedRefusal])}}
    refusals: Schema = {"Relayed": {"description": _RELAYED, "content": relayed_refusal}}
    for name, schema in sorted({_refusal_name(item): _refusal(item) for item in shown}.items()):
        schemas[name] = schema
        refusals[name] = {"description": "A refusal, by its status", "content": {JSON: {"schema": _ref(name)}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLE,
            "version": _LABEL,
            "description": (
                f"Served at the site by edge-gateway {release}. What central answers (`x-answered-by`) goes there with "
                f"the caller's own session and comes back as it is.\n{_REFUSALS}"
            ),
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": schemas, "responses": refusals, "securitySchemes": _SECURITY},
    }


def places(path: str) -> list[str]:
    """Return the names of a path's parameters, which stand in braces."""
    return re.findall(r"\{([^{}]*)\}", path)


def family(path: str) -> str:
    """Return the family of a path: its first segment besides `v1`, `api` and `.well-known`."""
    words = [word for word in path.split("/") if word and word not in ("v1", "api", ".well-known")]
    return words[0] if words else "health"


def _operation(item: Operation, names: Mapping[type[BaseModel], str]) -> JsonValue:
    shown: Schema = {
        "operationId": _identity(item),
        "summary": item.purpose or _identity(item).replace("_", " "),
        "tags": [family(item.path)],
        "x-permission": item.rule.text,
        "x-answered-by": item.answered_by,
        "x-reads": not item.writes,
        "security": _security(item),
        "responses": _responses(item, names),
    }
    parameters: list[JsonValue] = [_place(name, item) for name in places(item.path)]
    if item.query is not None:
        parameters += _query(item.query)
    if parameters:
        shown["parameters"] = parameters
    if item.answered_by == "central":
        if item.method != "GET":
            there = {"schema": _ref(names[_TO_CENTRAL[item.body_type]])}
            shown["requestBody"] = {"required": True, "content": {item.body_type: there}}
    elif item.body is not None:
        required = any(field.is_required() for field in item.body.model_fields.values())
        shown["requestBody"] = {"required": required, "content": {item.body_type: {"schema": _ref(names[item.body])}}}
    elif item.body_type != JSON:
        shown["requestBody"] = {"required": True, "content": {item.body_type: {"schema": {"type": "string"}}}}
    return shown


def _security(item: Operation) -> list[JsonValue]:
    if not item.rule.session:
        return []
    if item.path.startswith(_LEGACY):
        return [{"ApiKey": []}]
    return _SESSION if item.view is None else [*_SESSION, {"ViewToken": []}]


def _responses(item: Operation, names: Mapping[type[BaseModel], str]) -> JsonValue:
    if item.answered_by == "central":
        return _relayed_responses(item, names)
    refusal: Schema = {"$ref": f"#/components/responses/{_refusal_name(item)}"}
    found: Schema = {str(status): refusal for status in _refused(item)}
    success = _success(item, names)
    found[str(item.status)] = success
    if item.answer_type != JSON and item.head:
        found["206"] = {**success, "description": "A part of the file"}
        found["304"] = {"description": "The caller has it already"}
        found["416"] = {"description": "The file has no such part"}
    return dict(sorted(found.items()))


def _success(item: Operation, names: Mapping[type[BaseModel], str]) -> Schema:
    if item.answer is not None:
        return {"description": "Success", "content": {item.answer_type: {"schema": _ref(names[item.answer])}}}
    if item.answer_type == JSON:
        return {"description": "Success"}
    schema: Schema = {"type": "string"} if item.answer_type.startswith("text/") else _FILE
    media_types = (item.answer_type, *item.other_types)
    return {"description": "Success", "content": {media_type: {"schema": schema} for media_type in media_types}}


def _relayed_responses(item: Operation, names: Mapping[type[BaseModel], str]) -> JsonValue:
    found: Schema = {"2XX": _success(item, names), "default": {"$ref": "#/components/responses/Relayed"}}
    if item.method == "GET":
        found["3XX"] = {"description": "Elsewhere, by its `Location`, or the caller has it already"}
    return dict(sorted(found.items()))


def _refused(item: Operation) -> list[int]:
    """Return the refusal statuses of an operation that the gateway answers, sorted."""
    found = {503, *item.refuses}
    if item.rule.session:
        found |= {401, 403} if item.path.startswith(_LEGACY) else {500}
    if item.writes:
        found |= {400, 403, 409}
    if item.reads:
        found |= {403}
    if item.body is not None or item.body_type != JSON:
        found |= {400, 404, 408, 413}
    if item.body_type != JSON:
        found |= {415}
    if item.query is not None:
        found |= {400}
    if "{" in item.path:
        found |= {404, 504}
    return sorted(found | {500} if not item.path.startswith("/health") and item.path != "/" else found)


def _schemas(shown: Iterable[Operation]) -> tuple[dict[type[BaseModel], str], Schema]:
    """Return each model's schema name, and the schemas by name."""
    validated = {item.body for item in shown if item.body is not None}
    to_central = set(_TO_CENTRAL.values())
    told = {item.answer for item in shown if item.answer is not None} | {RelayedRefusal}
    wanted = [
        *((model, "validation") for model in sorted(validated | to_central, key=lambda one: one.__name__)),
        *((model, "serialization") for model in sorted(told, key=lambda one: one.__name__)),
    ]
    known, definitions = models_json_schema(wanted, ref_template=_REF, schema_generator=JsonSchemas)  # type: ignore[arg-type]  # modes as literals
    names = {
        model: str(schema["$ref"]).rpartition("/")[2]
        for (model, _), schema in known.items()
        if issubclass(model, BaseModel)
    }
    found: Schema = dict(definitions.get("$defs", {}))
    for model in validated:
        _admit_null(found[names[model]])
    return names, found


def _admit_null(schema: JsonValue) -> None:
    """Let every optional field of a body's schema be null, since `Body` treats null as absent."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return
    required = schema.get("required", [])
    properties = schema["properties"]
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    for name, there in properties.items():
        if name not in required:
            properties[name] = {"anyOf": [there, {"type": "null"}]}


def _query(model: type[BaseModel]) -> list[JsonValue]:
    schema = model.model_json_schema(mode="validation", schema_generator=JsonSchemas)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": there}
        for name, there in schema.get("properties", {}).items()
    ]


def _place(name: str, item: Operation) -> JsonValue:
    own_id = item.answered_by == "gateway" and (name == "id" or name.endswith("_id")) and item.path.startswith("/v1/")
    pattern = "^[0-9]{1,19}$" if own_id else "^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,127}$"
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _refusal(item: Operation) -> Schema:
    properties: Schema = {"error": {"type": "string"}}
    if not item.path.startswith(_LEGACY):
        properties = {"success": {"const": False}, **properties}
        if item.resource:
            properties[item.resource] = {"type": "null"}
    return {"type": "object", "properties": properties, "required": [*properties]}


def _refusal_name(item: Operation) -> str:
    if item.path.startswith(_LEGACY):
        return "Refused_program"
    return f"Refused_{item.resource}" if item.resource else "Refused"


def _ref(name: str) -> JsonValue:
    return {"$ref": _REF.format(model=name)}


def _identity(item: Operation) -> str:
    words = re.findall(r"[A-Za-z0-9]+", item.path)
    return "_".join((item.method.lower(), *words))


@cache
def _description(operations: tuple[Operation, ...], release: str) -> tuple[bytes, str]:
    """Return the JSON text and its ETag. Blocks for about 0.3 s the first time, then answers from the cache."""
    text = to_json(described(operations, release=release))
    return text, hashlib.sha256(text).hexdigest()[:32]


class Description(Family):
    """The handler of `GET /openapi.json`. The text is made at the first request, and holds nothing about the site."""

    def __init__(self, context: InterfaceContext, operations: tuple[Operation, ...]) -> None:
        super().__init__(context)
        self._operations = operations
        self._one = asyncio.Lock()

    @operation("GET", "/openapi.json", OPEN, head=True, purpose="This interface as OpenAPI 3.1")
    async def _get(self, request: web.Request) -> web.StreamResponse:
        async with self._one:
            text, tag = await asyncio.to_thread(_description, self._operations, self.context.release)
        answer = web.Response(body=text, content_type="application/json", charset="utf-8")
        answer.headers["Cache-Control"] = "no-cache"
        return unless_known(request, answer, tag=tag)
