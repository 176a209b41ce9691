"""The site's problems in the form that the page, the interface and the command line show."""

from __future__ import annotations

from urllib.parse import quote

from gateway.domain.problems import ProblemKind as K
from gateway.domain.writes import JsonObject
from gateway.problems.problem import Problem, SitePart, Verdict
from gateway.runtime.clock import iso_utc
from gateway.texts import keyed

_FETCHED_AGAIN = frozenset({K.CENTRAL_LIST_INCOMPLETE, K.CENTRAL_LIST_OLD, K.CENTRAL_LIST_SHRANK, K.CARDS_UNREADABLE})
_OF_SITE_FILE = frozenset({K.SITE_FILE_NOTICE})
_OF_INPUTS = frozenset({K.GATE_LIMITS_BOTH_ON})
"""Problems of lanes for which the page shows the inputs, which are under Health."""


def problem_fields(problem: Problem) -> JsonObject:
    """Return the fields of a `ProblemAnswer`."""
    said = problem.acknowledged
    return {
        "kind": problem.kind.value,
        "part": problem.part.value,
        "id": problem.id,
        "name": problem.name,
        "subject": problem.subject,
        "title": str(problem.title),
        "text": str(problem.text),
        "lanes": list(problem.lanes),
        "since": iso_utc(problem.since),
        "severity": problem.severity.name.lower(),
        "means": str(problem.means),
        "steps": [str(step) for step in problem.steps],
        "action": _action(problem),
        "acknowledged_by": "" if said is None else said.by,
        "acknowledged_at": None if said is None else iso_utc(said.at),
        "silent_until": iso_utc(said.silent_until) if said is not None and said.silent_until else None,
    }


def problem_texts(problem: Problem) -> JsonObject:
    """Return the texts of a problem for the page, which makes its own language of them."""
    return {
        "title": keyed(problem.title),
        "text": keyed(problem.text),
        "means": keyed(problem.means),
        "steps": [keyed(step) for step in problem.steps],
        "names_part": problem.names_its_part,
    }


def _action(problem: Problem) -> JsonObject | None:
    if problem.kind in _FETCHED_AGAIN:
        return {"label": "Fetch everything again", "show": "", "post": "/status/sync/refresh"}
    return None if (way := _way(problem)) is None else {"label": way[0], "show": f"/status/{way[1]}", "post": ""}


def _way(problem: Problem) -> tuple[str, str] | None:
    """Return the label and the address below `/status/` of a view that shows more of the problem; None for none."""
    match problem.part:
        case SitePart.LANE if problem.kind in _OF_INPUTS:
            return "Show its inputs", "health"
        case SitePart.LANE:
            return "Show the lane", f"lanes/{quote(problem.id, safe='')}"
        case SitePart.LINE:
            return "Show the line", f"lines?line={quote(problem.id, safe='')}"
        case SitePart.DEVICE if problem.line:
            return "Show it on its line", f"lines?device={quote(problem.id, safe='')}"
        case SitePart.DEVICE | SitePart.CENTRAL | SitePart.FLEET:
            return "Show its state", "health"
        case _:
            return ("Show the site file", "settings") if problem.kind in _OF_SITE_FILE else None


def verdict_fields(verdict: Verdict) -> JsonObject:
    """Return `headline`, the verdict in a few words, and `problems`, the worst first."""
    return {"headline": str(verdict.headline), "problems": [problem_fields(problem) for problem in verdict.problems]}
