"""How the simulated central misbehaves when asked to."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class ErrorKind(StrEnum):
    """What central answers instead of its real answer."""

    NONE = "none"
    TEXT = "text"
    """500 with a page of text, as a crashed process behind a proxy does."""
    JSON = "json"
    """500 with the usual envelope and a failure of its own."""
    PORTAL = "portal"
    """200 with a web page, as a captive portal on the way does."""


class Faults(BaseModel):
    """What goes wrong, and where. The default is a healthy central.

    To have connections refused, stop the service and start it again on its port.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: str = Field(default="/", description="only paths that begin so misbehave")
    down: bool = Field(default=False, description="connections are reset before an answer")
    latency_seconds: float = Field(default=0, ge=0, le=600, description="before anything is done")
    error: ErrorKind = ErrorKind.NONE
    error_times: int | None = Field(default=None, ge=0, description="how often `error` happens; null: always")
    lost_answers: int = Field(default=0, ge=0, description="how many requests are carried out and then cut off")
    count_off_by: int = Field(default=0, description="added to `count` of lists")
    truncate_to: int | None = Field(default=None, ge=0, description="pages come with at most this many records")
    slow_body_seconds: float = Field(default=0, ge=0, le=600, description="time over which a body trickles out")
    deny: str = Field(default="", description="a permission that every account lacks")

    def touch(self, path: str) -> bool:
        """Whether these faults are for that path."""
        return path.startswith(self.paths)
