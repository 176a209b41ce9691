"""Values of the site file that the sections of devices are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def following(pattern: str, words: str) -> AfterValidator:
    """Return a validator that refuses text not matching the pattern, with `words` ("must be …") as the message.

    The pattern is not published by this validator; a field of the interface does that with `json_schema_extra`.
    """
    compiled = re.compile(pattern)

    def follows(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(words)
        return value

    return AfterValidator(follows)


@dataclass(frozen=True, slots=True)
class NamesSecret:
    """Mark of a setting that names a secret.

    Attributes:
        may_be_empty: some devices and cameras have accounts without a password.
        is_reader_key: the key of an OSDP reader, which is checked by rules of its own.
    """

    may_be_empty: bool = False
    is_reader_key: bool = False


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
Username = Annotated[Name, following(r"[^:]+", "must be without ':'")]
"""A colon cannot be sent in a user name (RFC 7616)."""
RecordId = Annotated[int, Field(strict=True, ge=1, lt=2_000_000_000)]

HOLD_SECONDS = 3.0
HoldSeconds = Annotated[
    float, Field(ge=0.1, le=60, description="for so long, a card or tag that stays at the reader is presented once")
]


class Section(BaseModel):
    """A table of the site file: unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
