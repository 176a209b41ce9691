"""Acknowledgement of a problem of the site, on the page or by command."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Part
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.operation import CONTROL_DEVICES

_HOUR_SECONDS = 3600.0


class ProblemNamed(Body):
    """A problem, identified as in the list of problems. For `silent_hours`, nobody is called for it."""

    kind: ProblemKind
    part: Part
    id: Annotated[str, Field(strict=True, max_length=200)] = ""
    subject: Annotated[str, Field(strict=True, max_length=1000)] = ""
    silent_hours: Annotated[float, Field(ge=0, le=168)] = 0.0


class ProblemKey(AnswerPart):
    """The identity of a problem in the list of problems."""

    kind: ProblemKind
    part: Part
    id: str
    subject: str


class AcknowledgedAnswer(Answer):
    """The problem that a person knows of now."""

    problem: ProblemKey


class StatusProblems(Family):
    """The handler of `/status/problem/acknowledge`."""

    @operation("POST", "/status/problem/acknowledge", CONTROL_DEVICES, "problem")
    async def _acknowledge(self, named: ProblemNamed, caller: Caller) -> AcknowledgedAnswer:
        key = (named.kind, named.part, named.id, named.subject)
        self.context.acknowledge(key, by=caller.username, silent_seconds=named.silent_hours * _HOUR_SECONDS)
        return AcknowledgedAnswer(problem=ProblemKey.model_validate(named))
