"""Write `docs/troubleshooting.md`: every kind of problem, what it means, and what to do.

Run it as `python scripts/troubleshooting.py`. The texts are those that the page and `edge-gateway doctor` show.
"""

from __future__ import annotations

from pathlib import Path

from gateway.domain.problems import ProblemKind
from gateway.problems.advice import SEVERITY, meaning_of, steps_of, title_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "troubleshooting.md"
_HEAD = """# Problems and what to do

The status page, `edge-gateway doctor` and `GET /health/ready` (for those who signed in) show the same list of problems.
What stops a lane comes first and is an alarm, whatever its kind. `/health/ready` answers 503 while a lane cannot work,
and while nothing can be recorded. An error in the log has a code instead: see [Codes of the log](log-codes.md).
"""


def page() -> str:
    """Return the page as it should be."""
    return "\n".join([_HEAD, *map(_section, ProblemKind)])


def _section(kind: ProblemKind) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(steps_of(kind), start=1))
    severity = SEVERITY[kind].name.lower()
    return f"## {title_of(kind)}\n\n`{kind.value}`, {severity}. {meaning_of(kind)}\n\n{steps}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
