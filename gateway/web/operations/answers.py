"""Base models of answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["online", "offline", "unknown"]


class Answer(BaseModel):
    """Base of the bodies of successful answers. Each adds its fields to `success`."""

    model_config = ConfigDict(frozen=True)

    success: Literal[True] = True


class Listed(Answer):
    """A list: how many records there are in all, whatever the page holds."""

    count: int


class CursorListed(Listed):
    """A list with cursors. An empty one has no `next_cursor`."""

    next_cursor: int | None = None
