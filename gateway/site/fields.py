"""Value types that the sections of a site file share, and a walk over the settings of one type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gateway.domain.validation_messages import following


@dataclass(frozen=True, slots=True)
class NamesSecret:
    """Mark of a setting that names a secret.

    Attributes:
        may_be_empty: some devices and cameras have accounts without a password.
        is_reader_key: the key of an OSDP reader, which `osdp_keys` checks.
    """

    may_be_empty: bool = False
    is_reader_key: bool = False


@dataclass(frozen=True, slots=True)
class NamesAuthorities:
    """Mark of a setting that names a file of certificate authorities.

    Attributes:
        loss: what does not work while the file cannot be used; "" if the site file is refused then.
    """

    loss: str = ""


Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
Slug = Annotated[
    str,
    following(
        r"[a-z0-9][a-z0-9_-]{0,39}", "must be 1 to 40 small letters, digits, '-' or '_', a letter or digit first"
    ),
]
_SECRET = following(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "must be the name of a secret: 1 to 64 letters, digits, '.', '-' or '_'"
)
SecretName = Annotated[str, _SECRET, NamesSecret()]
DevicePassword = Annotated[str, _SECRET, NamesSecret(may_be_empty=True)]
ReaderKey = Annotated[str, _SECRET, NamesSecret(is_reader_key=True)]
RecordId = Annotated[int, Field(strict=True, ge=1, lt=2_000_000_000)]
Permission = Annotated[
    str, following(r"\*|can_[a-z_]{1,60}", "must be '*' or the name of a permission, as 'can_control_devices'")
]

HOLD_SECONDS = 3.0
HoldSeconds = Annotated[
    float, Field(ge=0.1, le=60, description="for so long, a card or tag that stays at the reader is presented once")
]


class Section(BaseModel):
    """A table of the site file: unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


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
