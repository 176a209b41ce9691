"""Write `docs/event-numbers.md`: the numbers of events and their meanings.

Run it as `python scripts/event_numbers.py`. The tables come from the enumerations that the gateway itself uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path

from gateway.domain.events import Category, EventKind, Severity

PAGE = Path(__file__).resolve().parents[1] / "docs" / "event-numbers.md"
_HEAD = """# Numbers of events

`type`, `category` and `subcategory` of an event are numbers (`POST /v1/event/list`, `POST /v1/event`). The interface
leaves their meaning open; these are the ones of this gateway. `/openapi.json` has them as the enumerations `EventKind`,
`Category` and `Severity`, so that generated clients know their names. A number never gets another meaning. A newer
gateway may have more types.
"""


def page() -> str:
    """Return the page as it should be."""
    kinds = "\n".join(
        f"| {kind.value} | `{kind.name}` | {kind.label} | {_shown(kind.category)} | {_shown(kind.severity)} |"
        for kind in EventKind
    )
    types = f"## Types\n\n| type | Name | Meaning | category | subcategory |\n|---|---|---|---|---|\n{kinds}\n"
    return "\n".join(
        [_HEAD, types, _numbers("Categories", "category", Category), _numbers("Subcategories", "subcategory", Severity)]
    )


def _numbers(title: str, field: str, numbers: Iterable[IntEnum]) -> str:
    rows = "\n".join(f"| {number.value} | `{number.name}` |" for number in numbers)
    return f"## {title}\n\n| {field} | Name |\n|---|---|\n{rows}\n"


def _shown(number: IntEnum) -> str:
    return f"{number.value} `{number.name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
