"""Faults of the simulated central on request."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ErrorKind(StrEnum):
    """A wrong answer that comes instead of central's real one."""

    NONE = "none"
    TEXT = "text"
    """500 with a page of text, as a crashed process behind a proxy does."""
    JSON = "json"
    """500 with the usual envelope and an error message."""
    PORTAL = "portal"
    """200 with a web page, as from a captive portal on the way."""
    UNROUTED = "unrouted"
    """404 with an envelope, as from a proxy that has no route to central."""


Chance = Annotated[float, Field(ge=0, le=1)]


class Chances(BaseModel):
    """The probabilities of random faults, from 0 (never) to 1 (always).

    Comments name the groups; at most one fault of each group affects a request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # before the request is carried out
    lost_requests: Chance = Field(default=0, description="cut off, and nothing was done")
    half_open: Chance = Field(default=0, description="nothing is done and nothing answered; the connection stays")
    unauthenticated: Chance = Field(default=0, description="500 with the authentication message; the session is good")
    expired_sessions: Chance = Field(default=0, description="the session is over, and the request is told so")
    failures: Chance = Field(default=0, description="500 with the envelope and a failure of its own")
    crashes: Chance = Field(default=0, description="500 with a page of text")
    refusals: Chance = Field(default=0, description="400 with the envelope: not to be asked again")
    # after it was carried out
    lost_answers: Chance = Field(default=0, description="cut off")
    torn_answers: Chance = Field(default=0, description="cut off in the middle of the body")
    silent_answers: Chance = Field(default=0, description="nothing is answered; the connection stays")
    slow_bodies: Chance = Field(default=0, description="the body trickles; 0: always, if it has a time to do so")
    # in what a list says
    truncated_pages: Chance = Field(default=0, description="the page ends too early")
    shifted_pages: Chance = Field(default=0, description="later pages begin some records off their place")
    duplicated_records: Chance = Field(default=0, description="a record comes twice")
    missing_records: Chance = Field(default=0, description="a record does not come")
    wrong_counts: Chance = Field(default=0, description="the count is off")

    @model_validator(mode="after")
    def _fit(self) -> Self:
        groups = (
            (
                self.lost_requests,
                self.half_open,
                self.unauthenticated,
                self.expired_sessions,
                self.failures,
                self.crashes,
                self.refusals,
            ),
            (self.lost_answers, self.torn_answers, self.silent_answers, self.slow_bodies),
            (
                self.truncated_pages,
                self.shifted_pages,
                self.duplicated_records,
                self.missing_records,
                self.wrong_counts,
            ),
        )
        if any(sum(group) > 1 for group in groups):
            raise ValueError("the chances of a group are more than 1 together")
        return self


class Faults(BaseModel):
    """The faults of central, and the paths that they affect. The default is a healthy central.

    To have connections refused, stop the service and start it again on its port.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: str = Field(default="/", description="only paths that begin so misbehave")
    down: bool = Field(default=False, description="connections are reset before an answer")
    latency_seconds: float = Field(default=0, ge=0, le=600, description="before anything is done")
    latency_spread_seconds: float = Field(default=0, ge=0, le=600, description="at most this much more, by chance")
    record_seconds: float = Field(default=0, ge=0, le=1, description="for each record that a page is asked to have")
    error: ErrorKind = ErrorKind.NONE
    error_times: int | None = Field(default=None, ge=0, description="how often `error` happens; null: always")
    lost_answers: int = Field(default=0, ge=0, description="how many requests are carried out and then cut off")
    unnamed: bool = Field(default=False, description="the answer to a create says success, and not which id it gave")
    count_off_by: int = Field(default=0, description="added to `count` of lists")
    truncate_to: int | None = Field(default=None, ge=0, description="pages come with at most this many records")
    slow_body_seconds: float = Field(default=0, ge=0, le=600, description="time over which a body trickles out")
    half_open_seconds: float = Field(default=60, ge=0, le=86_400, description="after which an open end is cut off")
    clock_skew_seconds: float = Field(default=0, description="how far central's clock is ahead, in Date and records")
    deny: str = Field(default="", description="a permission that every account lacks")
    chances: Chances = Chances()
    seed: int = Field(default=0, description="all chance comes from it and the order of requests")

    def touch(self, path: str) -> bool:
        """Return whether these faults affect the path."""
        return path.startswith(self.paths)
