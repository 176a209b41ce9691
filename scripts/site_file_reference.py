"""Write `docs/site-file.md`: every section and key of the site file, from its models.

Run it as `python scripts/site_file_reference.py`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from drivers.device import Device
from drivers.kinds import BUILT_IN
from drivers.settings import NamesSecret
from gateway.site.formats import FORMAT
from gateway.site.models import Site

PAGE = Path(__file__).resolve().parents[1] / "docs" / "site-file.md"
_HEAD = f"""# The site file

Every section and key, made from the program's own models by `make docs`. `config/site.example.toml` is a whole file
with comments, and `edge-gateway check SITE.toml` names each fault with its place. Unknown keys are refused.

`format = {FORMAT}` before the first section is the format of the file. Older ones are understood; `edge-gateway check
--rewrite SITE.toml` writes today's.

Where a key is a *secret*, the file has its name alone; [Installing](install.md) says where the gateway looks it up.
*Needed* means that the section is refused without the key.
"""


def page() -> str:
    """Return the page as it should be."""
    parts, seen = [_HEAD], set[type[BaseModel]]()
    for name, field in Site.model_fields.items():
        models = list(dict.fromkeys(_models(field.annotation)))
        is_list = "tuple" in str(field.annotation)
        for model in models:
            driver = _literal(model, "driver")
            title = f"[[{name}]]" if is_list else f"[{name}]"
            parts.append(_section(title + (f", driver = {driver}" if driver else ""), model, seen))
    while inner := [one for one in _named if one not in seen]:
        parts += [_section(_title(model), model, seen) for model in inner]
    return "\n".join(parts)


_named: dict[type[BaseModel], None] = {}
"""Tables inside sections, in the order in which they are met."""


def _section(title: str, model: type[BaseModel], seen: set[type[BaseModel]]) -> str:
    seen.add(model)
    text = " ".join((model.__doc__ or "").split())
    rows = "".join(_row(name, field) for name, field in model.model_fields.items())
    return f"## {title}\n\n{text}\n\n| key | value | default | |\n|---|---|---|---|\n{rows}"


def _row(name: str, field: FieldInfo) -> str:
    bounds = ", ".join(_bounds(field.metadata))
    value = _value(field.annotation) + (f", {bounds}" if bounds else "")
    return f"| `{field.alias or name}` | {value} | {_default(field)} | {field.description or ''} |\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*needed*"
    default = field.get_default(call_default_factory=True)
    if default is None or default is PydanticUndefined:
        return "none"
    if isinstance(default, BaseModel):
        return "as below"
    return _written(default)


def _written(value: object) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case Enum():
            return f'`"{value.value}"`'
        case str():
            return f"`{json.dumps(value, ensure_ascii=False)}`"
        case tuple() | list() | frozenset() | set() | dict():
            return "none" if not value else ", ".join(_written(one) for one in value)
        case _:
            return f"`{value}`"


def _value(kind: Any) -> str:
    """Return in words what a key takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = ", ".join(_bounds(inner[1:]))
        return _value(inner[0]) + (f", {bounds}" if bounds else "")
    if origin is None:
        return _plain(kind)
    if origin is Literal:
        words = " or ".join(_written(one) for one in inner)
    elif origin in (Union, types.UnionType):
        words = " or ".join(dict.fromkeys(_value(one) for one in inner if one is not type(None)))
    else:
        is_list = origin in (tuple, list, frozenset, set)
        words = f"list of: {_value(inner[0])}" if is_list else f"table of: {_value(inner[-1])}"
    return words


def _plain(kind: Any) -> str:
    """Return in words what a type without parameters takes."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        _named.setdefault(kind)
        return f"table, see *{_title(kind)}*"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(_written(one) for one in kind)
    words = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return words.get(kind, str(getattr(kind, "__name__", kind)).lower())


def _bounds(metadata: object) -> Iterator[str]:
    for one in metadata if isinstance(metadata, list | tuple) else ():
        match one:
            case FieldInfo():
                yield from _bounds(one.metadata)
            case NamesSecret():
                yield "the name of a *secret*"
            case Ge():
                yield f"from {one.ge}"
            case Gt():
                yield f"more than {one.gt}"
            case Le():
                yield f"up to {one.le}"
            case Lt():
                yield f"less than {one.lt}"
            case MinLen() if one.min_length > 1:
                yield f"at least {one.min_length} long"
            case MaxLen():
                yield f"at most {one.max_length} long"


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a field of the site takes."""
    if kind is Device:
        yield from BUILT_IN
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _models(inner)


def _title(model: type[BaseModel]) -> str:
    words = model.__name__.removesuffix("Section").removesuffix("Settings")
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in words).strip()


def _literal(model: type[BaseModel], key: str) -> str:
    field = model.model_fields.get(key)
    return "" if field is None else _value(field.annotation)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
