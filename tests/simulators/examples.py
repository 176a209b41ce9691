"""Random examples of a property: few in the fast suite, where they are the same in each run; many in the long one."""

from __future__ import annotations

from hypothesis import settings


def examples(few: int, *, of: int) -> int:
    """Return `few` in the fast suite, and `of` where `--hypothesis-profile fresh` asks for new ones."""
    return of if settings.get_current_profile_name() == "fresh" else few
