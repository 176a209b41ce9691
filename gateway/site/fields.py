"""Value types that the sections of a site file share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gateway.domain.validation_messages import following

Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
Slug = Annotated[
    str,
    following(
        r"[a-z0-9][a-z0-9_-]{0,39}", "must be 1 to 40 small letters, digits, '-' or '_', a letter or digit first"
    ),
]
SecretName = Annotated[
    str,
    following(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "must be the name of a secret: 1 to 64 letters, digits, '.', '-' or '_'",
    ),
]
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
