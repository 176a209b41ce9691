"""Writes `docs/interface-for-programs.md`: how to call, what refusals mean, and what each write takes.

Run it as `python scripts/interface_for_programs.py`. Its beginning is written by hand, in the file of that name beside
this one; the tables come from the models that validate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, JsonValue

from gateway.web.catalogue import OPERATIONS, PUBLIC
from gateway.web.http.bodies import WriteBody
from gateway.web.operation import Operation

PAGE = Path(__file__).resolve().parents[1] / "docs" / "interface-for-programs.md"
_HEAD = Path(__file__).with_suffix(".md").read_text("utf-8")
_KINDS = {"integer": "whole number", "string": "text", "boolean": "true or false", "number": "number", "array": "list"}
_LARGE = 2**62


def page() -> str:
    """Return the page as it should be."""
    shown = [item for item in OPERATIONS if item in PUBLIC and item.writes and item.body is not None]
    return "\n".join([_HEAD, *map(_section, sorted(shown, key=lambda item: (item.path, item.method)))])


def _section(item: Operation) -> str:
    body = item.body
    if body is None or not body.model_fields:
        return f"### `{item.method} {item.path}`\n\n{item.purpose}. No fields.\n"
    schema = body.model_json_schema(mode="validation")
    emptied = body.null_means if issubclass(body, WriteBody) else {}
    rows = "\n".join(_row(name, body, schema, emptied=name in emptied) for name in body.model_fields)
    return f"### `{item.method} {item.path}`\n\n{item.purpose}.\n\n| Field | Takes |\n|---|---|\n{rows}\n"


def _row(name: str, body: type[BaseModel], schema: dict[str, JsonValue], *, emptied: bool) -> str:
    properties, definitions = _object(schema.get("properties")), _object(schema.get("$defs"))
    field = body.model_fields[name]
    words = [_kind(_object(properties.get(name)), definitions)]
    if field.description:
        words.append(field.description)
    if not field.is_required() and isinstance(field.default, str | int) and field.default not in ("", False):
        words.append(f"left out: `{getattr(field.default, 'value', field.default)}`")
    if emptied:
        words.append("null empties it")
    told = "; ".join(words).replace("|", "\\|")
    return f"| {f'**{name}**' if field.is_required() else name} | {told} |"


def _kind(schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue]) -> str:
    """One value's schema in words."""
    if "$ref" in schema:
        return _kind(_object(definitions.get(str(schema["$ref"]).rpartition("/")[2])), definitions)
    options = schema.get("anyOf")
    if isinstance(options, list):
        kinds = [_kind(_object(one), definitions) for one in options if _object(one).get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    allowed = schema.get("enum")
    if isinstance(allowed, list):
        return ", ".join(f"`{one}`" for one in allowed)
    if schema.get("format") == "binary":
        return "a file"
    kind = _KINDS.get(str(schema.get("type")), "any JSON")
    if schema.get("type") == "array":
        return f"list of {_kind(_object(schema.get('items')), definitions)}{_bounds(schema, 'minItems', 'maxItems')}"
    return kind + _bounds(schema, "minLength", "maxLength") + _bounds(schema, "minimum", "maximum")


def _bounds(schema: Mapping[str, JsonValue], low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    ends = [value if isinstance(value, int) and abs(value) < _LARGE else None for value in (least, most)]
    unit = " characters" if low == "minLength" else ""
    match ends:
        case [int(first), int(last)]:
            return f", {first} to {last}{unit}"
        case [None, int(last)]:
            return f", at most {last}{unit}"
        case [int(first), None]:
            return f", from {first}{unit}"
    return ""


def _object(value: JsonValue | None) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
