"""Models and helpers that the operations of the legacy family share. Ids are text in this family."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from drivers.settings import following
from gateway.domain.errors import NotFoundError
from gateway.web.http.bodies import LARGEST_ID

PRINTED = r"^[^\x00-\x1f\x7f]*$"
_NOT_BLANK = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
Printed = Annotated[
    str,
    Field(strict=True, json_schema_extra={"pattern": PRINTED}),
    following(PRINTED, "must be without control characters"),
]
Word = Annotated[
    Printed,
    Field(min_length=1, max_length=128, json_schema_extra={"pattern": _NOT_BLANK}),
    following(_NOT_BLANK, "must not be blank"),
]
Line = Annotated[Printed, Field(max_length=1000)]


class LegacyAnswer(BaseModel):
    """Base of answers. A failure is `{error}`, one sentence, with its status."""

    model_config = ConfigDict(frozen=True)


class Refused(LegacyAnswer):
    """Any failure."""

    error: str


class PageQuery(BaseModel):
    """A page of a list, with at most 500 records. The answer's `total` counts all records."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_limit: Annotated[int, Field(ge=1)] = 500

    @property
    def limit(self) -> int:
        """The largest number of records."""
        return min(self.page_limit, 500)

    @property
    def offset(self) -> int:
        """The number of records to skip."""
        return (self.page - 1) * self.limit


_NUMBER = re.compile(r"[0-9]{1,19}")


def number_of(text: str, what: str) -> int:
    """Return an id as a number. Raises NotFoundError for a text that cannot be an id; `what` is the kind of record."""
    plain = text.strip()
    if not _NUMBER.fullmatch(plain) or int(plain) > LARGEST_ID:
        raise NotFoundError(f"there is no {what} '{plain[:40]}'")
    return int(plain)
