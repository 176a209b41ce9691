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
from gateway.problems.line_advice import LINE_ADVICE
from gateway.problems.machine_advice import MACHINE_ADVICE

_MOST_NAMED = 3

ADVICE = MappingProxyType({**LANE_ADVICE, **LINE_ADVICE, **GATEWAY_ADVICE, **MACHINE_ADVICE, **CENTRAL_ADVICE})
"""Every kind, in words."""


class Part(StrEnum):
    """Parts of a site that may have a problem."""

    LANE = "lane"
    LINE = "line"
    DEVICE = "device"
    CAMERA = "camera"
    CENTRAL = "central"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person's word that they know of a problem: who, when, and until when nobody is called for it (wall micros)."""

    by: str
    at: WallMicros
    silent_until: WallMicros = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        kind: what it is, for programs.
        part: which part of the site has it.
        id: the id of that lane, line, device or camera; "" for central and the gateway.
        name: its name for people.
        text: what is wrong, in one sentence.
        subject: which input of it, "" where there is but one.
        lanes: names of the lanes that cannot admit vehicles or let them out because of it.
        line: the line that its device is on, "" for none or where it is no device's.
        since: wall micros since when; 0 while that is not known.
        acknowledged: who knows of it, None for nobody.
    """

    kind: ProblemKind
    part: Part
    id: str
    name: str
    text: str
    subject: str = ""
    lanes: tuple[str, ...] = ()
    line: str = ""
    since: WallMicros = 0
    acknowledged: Acknowledgement | None = None

    @property
    def sentence(self) -> str:
        """What is wrong, with the lanes that it stops."""
        return f"{listed(self.lanes)} cannot work: {self.text}" if self.lanes else self.text

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same problem at another moment."""
        return self.kind, self.part, self.id, self.subject

    @property
    def severity(self) -> Severity:
        """How much it matters: what stops a lane is an alarm."""
        return Severity.ALARM if self.lanes else ADVICE[self.kind].severity

    @property
    def title(self) -> str:
        """Its kind for people."""
        return ADVICE[self.kind].title

    @property
    def means(self) -> str:
        """What it means for drivers now."""
        if not self.lanes:
            return ADVICE[self.kind].means
        return f"{listed(self.lanes)} cannot work. {ADVICE[self.kind].means}"

    @property
    def steps(self) -> tuple[str, ...]:
        """What to do, in this order."""
        return ADVICE[self.kind].steps


@dataclass(frozen=True, slots=True)
class Verdict:
    """All problems of a site at one moment, the worst first.

    `lanes`: how many lanes it has. `not_ready`: why the gateway is not ready, a sentence each.
    """

    problems: tuple[Problem, ...]
    lanes: int

    @property
    def not_ready(self) -> tuple[str, ...]:
        """Why the site does not work as a whole, a sentence each; empty when it does."""
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
        return "The lane works" if self.lanes == 1 else f"All {self.lanes} lanes work"


_STOPS_SITE = frozenset({ProblemKind.STORE_FAILING, ProblemKind.INTERFACE_NOT_SERVED, ProblemKind.DEVICE_NOT_SEEN})
"""Problems that stop no lane, and with which the site still is not ready."""


def listed(names: tuple[str, ...]) -> str:
    """Return names for people, the first ones and how many more."""
    shown = names[:_MOST_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
