"""Problems of the site as the page, the interface and the command line show them."""

from __future__ import annotations

from gateway.domain.writes import JsonObject
from gateway.problems.problem import Problem, Verdict
from gateway.runtime.clock import iso_utc
from gateway.web.operations.answers import Answer


class ProblemAnswer(Answer):
    """A problem of the site: what is wrong since when, what it means for drivers, and what to do.

    `id` is that of its lane, line, device or camera, `subject` the input concerned. `lanes` cannot work because of it.
    `acknowledged_by` knows of it since then; nobody is called for it until `silent_until`.
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
        "acknowledged_by": "" if said is None else said.by,
        "acknowledged_at": None if said is None else iso_utc(said.at),
        "silent_until": iso_utc(said.silent_until) if said is not None and said.silent_until else None,
    }


def verdict_fields(verdict: Verdict) -> JsonObject:
    """Return the verdict in a few words, and all problems, the worst first."""
    return {"headline": verdict.headline, "problems": [problem_fields(problem) for problem in verdict.problems]}
