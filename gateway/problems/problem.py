"""A problem of the site, and the verdict: all problems, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind
from gateway.domain.wall_time import WallMicros
from gateway.problems.advice import SEVERITY, meaning_of, steps_of, title_of
from gateway.texts import Text, Words, text

_MOST_NAMED = 3


class SitePart(StrEnum):
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
        text: the problem in one sentence; in the words of others where nothing is to be added to them.
        subject: what distinguishes problems of one kind and part, such as an input; "" if there can only be one.
        lanes: the names of the lanes that cannot work because of it.
        line: the line of its device, "" for none or if it is not a device's problem.
        told_steps: the steps to take where they follow from its cause; empty for those of its kind.
        since: since when it exists (wall micros), 0 if unknown.
        acknowledged: the acknowledgement, None if there is none.
    """

    kind: ProblemKind
    part: SitePart
    id: str
    name: str
    text: Words
    subject: str = ""
    lanes: tuple[str, ...] = ()
    line: str = ""
    told_steps: tuple[Text, ...] = ()
    since: WallMicros = 0
    acknowledged: Acknowledgement | None = None

    @property
    def sentence(self) -> Words:
        """The problem in one sentence, with the lanes that it stops."""
        return text("problem.cannot_work", lanes=listed(self.lanes), why=self.text) if self.lanes else self.text

    @property
    def names_its_part(self) -> bool:
        """True if the text has the part's name already."""
        return isinstance(self.text, Text) and self.name in self.text.names()

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of the problem: equal keys at different times mean the same problem."""
        return self.kind, self.part, self.id, self.subject

    @property
    def severity(self) -> Severity:
        """The severity: an alarm if it stops a lane, else that of its kind."""
        return Severity.ALARM if self.lanes else SEVERITY[self.kind]

    @property
    def title(self) -> Text:
        """The name of its kind for people."""
        return title_of(self.kind)

    @property
    def means(self) -> Text:
        """The consequences for drivers."""
        means = meaning_of(self.kind)
        return text("problem.stops", lanes=listed(self.lanes), means=means) if self.lanes else means

    @property
    def steps(self) -> tuple[Text, ...]:
        """The steps to take, in order."""
        return self.told_steps or steps_of(self.kind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All problems of a site at one time, the worst first. `lanes`: the number of the site's lanes."""

    problems: tuple[Problem, ...]
    lanes: int

    @property
    def not_ready(self) -> tuple[Words, ...]:
        """The sentences of the problems because of which the site is not ready; empty if it is."""
        return tuple(problem.sentence for problem in self.problems if problem.lanes or problem.kind in _STOPS_SITE)

    @property
    def headline(self) -> Text:
        """The verdict in a few words."""
        stopped = {lane for problem in self.problems for lane in problem.lanes}
        problems = text("verdict.problems", count=len(self.problems))
        if stopped:
            return text("verdict.stopped", count=len(stopped), lanes=self.lanes, problems=problems)
        if self.problems:
            return problems
        if not self.lanes:
            return text("verdict.no_lane")
        return text("verdict.lane_works") if self.lanes == 1 else text("verdict.all_work", lanes=self.lanes)


_STOPS_SITE = frozenset({ProblemKind.STORE_FAILING, ProblemKind.INTERFACE_NOT_SERVED, ProblemKind.DEVICE_NOT_SEEN})
"""Kinds of problems with which the site is not ready although they stop no lane."""


def listed(names: tuple[str, ...]) -> Words:
    """Join names for people: the first three, and the number of the rest ("A, B, C and 2 more")."""
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return text("list.more", names=shown, count=more) if more > 0 else shown


def gateway_problem(kind: ProblemKind, text: Words, subject: str = "", *, since: WallMicros = 0) -> Problem:
    """Return a problem of the gateway itself."""
    return Problem(kind=kind, part=SitePart.GATEWAY, id="", name="Gateway", text=text, subject=subject, since=since)
