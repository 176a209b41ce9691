"""A problem of the site, and the verdict: all problems, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind
from gateway.domain.wall_time import WallMicros
from gateway.problems.central_advice import CENTRAL_ADVICE
from gateway.problems.gateway_advice import GATEWAY_ADVICE
from gateway.problems.lane_advice import LANE_ADVICE

_MOST_NAMED = 3

ADVICE = MappingProxyType({**LANE_ADVICE, **GATEWAY_ADVICE, **CENTRAL_ADVICE})
"""The advice for every kind of problem."""


class Part(StrEnum):
    """The kind of part of a site that has a problem."""

    LANE = "lane"
    LINE = "line"
    DEVICE = "device"
    CAMERA = "camera"
    CENTRAL = "central"
    FLEET = "fleet"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person's acknowledgement of a problem.

    Attributes:
        by: the person's account.
        at: when it was given (wall micros).
        silent_until: until when nobody is called for the problem (wall micros), 0 for no such time.
    """

    by: str
    at: WallMicros
    silent_until: WallMicros = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        kind: the kind of problem, for programs.
        part: the kind of part that has it.
        id: the id of that lane, line, device or camera; "" for central, the fleet and the gateway.
        name: the part's name for people.
        text: the problem in one sentence.
        subject: what distinguishes problems of one kind and part, such as an input; "" if there can only be one.
        lanes: the names of the lanes that cannot work because of it.
        line: the line of its device, "" for none or if it is not a device's problem.
        told_steps: the steps to take where they follow from its cause; empty for those of its kind.
        since: since when it exists (wall micros), 0 if unknown.
        acknowledged: the acknowledgement, None if there is none.
    """

    kind: ProblemKind
    part: Part
    id: str
    name: str
    text: str
    subject: str = ""
    lanes: tuple[str, ...] = ()
    line: str = ""
    told_steps: tuple[str, ...] = ()
    since: WallMicros = 0
    acknowledged: Acknowledgement | None = None

    @property
    def sentence(self) -> str:
        """The problem in one sentence, with the lanes that it stops."""
        return f"{listed(self.lanes)} cannot work: {self.text}" if self.lanes else self.text

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of the problem: equal keys at different times mean the same problem."""
        return self.kind, self.part, self.id, self.subject

    @property
    def severity(self) -> Severity:
        """The severity: an alarm if it stops a lane, else that of its kind."""
        return Severity.ALARM if self.lanes else ADVICE[self.kind].severity

    @property
    def title(self) -> str:
        """The name of its kind for people."""
        return ADVICE[self.kind].title

    @property
    def means(self) -> str:
        """The consequences for drivers."""
        if not self.lanes:
            return ADVICE[self.kind].means
        return f"{listed(self.lanes)} cannot work. {ADVICE[self.kind].means}"

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps to take, in order."""
        return self.told_steps or ADVICE[self.kind].steps


@dataclass(frozen=True, slots=True)
class Verdict:
    """All problems of a site at one time, the worst first. `lanes`: the number of the site's lanes."""

    problems: tuple[Problem, ...]
    lanes: int

    @property
    def not_ready(self) -> tuple[str, ...]:
        """The sentences of the problems because of which the site is not ready; empty if it is."""
        return tuple(problem.sentence for problem in self.problems if problem.lanes or problem.kind in _STOPS_SITE)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        stopped = {lane for problem in self.problems for lane in problem.lanes}
        count = len(self.problems)
        problems = f"{count} problem{'s' if count > 1 else ''}"
        if stopped:
            return f"{len(stopped)} of {self.lanes} lanes cannot work, {problems}"
        if count:
            return problems
        if not self.lanes:
            return "No lane yet"
        return "The lane works" if self.lanes == 1 else f"All {self.lanes} lanes work"


_STOPS_SITE = frozenset({ProblemKind.STORE_FAILING, ProblemKind.INTERFACE_NOT_SERVED, ProblemKind.DEVICE_NOT_SEEN})
"""Kinds of problems with which the site is not ready although they stop no lane."""


def listed(names: tuple[str, ...]) -> str:
    """Join names for people: the first three, and the number of the rest ("A, B, C and 2 more")."""
    shown = names[:_MOST_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def gateway_problem(kind: ProblemKind, text: str, subject: str = "", *, since: WallMicros = 0) -> Problem:
    """Return a problem of the gateway itself."""
    return Problem(kind=kind, part=Part.GATEWAY, id="", name="Gateway", text=text, subject=subject, since=since)
