"""Value types that the sections of a site file share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _slug(value: str) -> str:
    if not _SLUG.fullmatch(value):
        raise ValueError("must be 1 to 40 small letters, digits, '-' or '_', a letter or digit first")
    return value


def _secret_name(value: str) -> str:
    # The error does not repeat the text, because somebody may have written the secret itself here.
    if not _SECRET_NAME.fullmatch(value):
        raise ValueError("must be the name of a secret: 1 to 64 letters, digits, '.', '-' or '_'")
    return value


Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
Slug = Annotated[str, AfterValidator(_slug)]
SecretName = Annotated[str, AfterValidator(_secret_name)]
RecordId = Annotated[int, Field(strict=True, ge=1, lt=2_000_000_000)]
Permission = Annotated[str, StringConstraints(pattern=r"^(\*|can_[a-z_]{1,60})$")]


class Section(BaseModel):
    """A table of the site file: unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
