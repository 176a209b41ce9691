"""The site's problems in the form that the page, the interface and the command line show."""

from __future__ import annotations

from urllib.parse import quote

from gateway.domain.problems import ProblemKind as K
from gateway.domain.writes import JsonObject
from gateway.problems.problem import Part, Problem, Verdict
from gateway.runtime.clock import iso_utc
from gateway.web.operations.answers import Answer

_FETCHED_AGAIN = frozenset({K.CENTRAL_LIST_INCOMPLETE, K.CENTRAL_LIST_OLD, K.CENTRAL_LIST_SHRANK, K.CARDS_UNREADABLE})
_OF_SITE_FILE = frozenset({K.SITE_FILE_NOTICE})
_OF_INPUTS = frozenset({K.GATE_LIMITS_BOTH_ON})
"""Problems of lanes for which the page shows the inputs, which are under Health."""


class ActionAnswer(Answer):
    """Action for a problem on the page: to show a view (`show`), or to call an operation without a body (`post`)."""

    label: str
    show: str
    post: str


class ProblemAnswer(Answer):
    """A problem of the site: what is wrong, since when, what it means for drivers, and what to do.

    `id` is that of its lane, line, device or camera, `subject` the input concerned. `lanes` cannot work because of it.
    `acknowledged_by` has known of it since `acknowledged_at`; nobody is called for it until `silent_until`. `action` is
    what the page offers, or null.
    """

    kind: str
    part: str
    id: str
    name: str
    subject: str
    title: str
    text: str
    lanes: tuple[str, ...]
    since: str
    severity: str
    means: str
    steps: tuple[str, ...]
    action: ActionAnswer | None
    acknowledged_by: str
    acknowledged_at: str | None
    silent_until: str | None


def problem_fields(problem: Problem) -> JsonObject:
    """Return the fields of a `ProblemAnswer`."""
    said = problem.acknowledged
    return {
        "kind": problem.kind.value,
        "part": problem.part.value,
        "id": problem.id,
        "name": problem.name,
        "subject": problem.subject,
        "title": problem.title,
        "text": problem.text,
        "lanes": list(problem.lanes),
        "since": iso_utc(problem.since),
        "severity": problem.severity.name.lower(),
        "means": problem.means,
        "steps": list(problem.steps),
        "action": _action(problem),
        "acknowledged_by": "" if said is None else said.by,
        "acknowledged_at": None if said is None else iso_utc(said.at),
        "silent_until": iso_utc(said.silent_until) if said is not None and said.silent_until else None,
    }


def _action(problem: Problem) -> JsonObject | None:
    if problem.kind in _FETCHED_AGAIN:
        return {"label": "Fetch everything again", "show": "", "post": "/status/sync/refresh"}
    return None if (way := _way(problem)) is None else {"label": way[0], "show": f"/status/{way[1]}", "post": ""}


def _way(problem: Problem) -> tuple[str, str] | None:
    """Return the label and the address below `/status/` of a view that shows more of the problem; None for none."""
    match problem.part:
        case Part.LANE if problem.kind in _OF_INPUTS:
            return "Show its inputs", "health"
        case Part.LANE:
            return "Show the lane", f"lanes/{quote(problem.id, safe='')}"
        case Part.LINE:
            return "Show the line", f"lines?line={quote(problem.id, safe='')}"
        case Part.DEVICE if problem.line:
            return "Show it on its line", f"lines?device={quote(problem.id, safe='')}"
        case Part.DEVICE | Part.CENTRAL | Part.FLEET:
            return "Show its state", "health"
        case _:
            return ("Show the site file", "settings") if problem.kind in _OF_SITE_FILE else None


def verdict_fields(verdict: Verdict) -> JsonObject:
    """Return `headline`, the verdict in a few words, and `problems`, the worst first."""
    return {"headline": verdict.headline, "problems": [problem_fields(problem) for problem in verdict.problems]}
