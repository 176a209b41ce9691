"""Marks and values of settings of the gateway's own sections, and a walk over the settings of one mark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel

from drivers.settings import following


@dataclass(frozen=True, slots=True)
class NamesAuthorities:
    """Mark of a setting that names a file of certificate authorities.

    Attributes:
        loss: what does not work while the file cannot be used; "" if the site file is refused then.
    """

    loss: str = ""


Permission = Annotated[
    str, following(r"\*|can_[a-z_]{1,60}", "must be '*' or the name of a permission, as 'can_control_devices'")
]

Mark = TypeVar("Mark")


def marked(section: BaseModel, kind: type[Mark], within: str = "") -> Iterator[tuple[str, str, Mark]]:
    """Yield each written setting with a mark of this kind, in a section and those inside it: place, text and mark."""
    for key, field in type(section).model_fields.items():
        value, place = getattr(section, key), f"{within}.{key}" if within else key
        if isinstance(value, str):
            inner = (mark for part in get_args(field.annotation) for mark in getattr(part, "__metadata__", ()))
            yield from ((place, value, mark) for mark in (*field.metadata, *inner) if isinstance(mark, kind))
        elif isinstance(value, BaseModel):
            yield from marked(value, kind, place)
        elif isinstance(value, tuple):
            for index, part in enumerate(value):
                if isinstance(part, BaseModel):
                    yield from marked(part, kind, f"{place}[{index}]")
