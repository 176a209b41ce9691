"""How long pulling rests between two pulls. Pure."""

from __future__ import annotations

from typing import Final

DEFAULT_BYTES_PER_SECOND: Final = 1_000_000
"""The average bandwidth that pulls may take."""

_LEAST_SHARE = 0.1  # of a pull that takes longer than the time between two


def rest_after(*, took: float, pull_seconds: float) -> float:
    """Return the seconds to rest after a pull, so that pulls start `pull_seconds` apart.

    A pull that takes longer than that is followed by a short rest.
    """
    return max(pull_seconds - took, min(pull_seconds, took * _LEAST_SHARE))


def bandwidth_rest(*, took: float, received: int, bytes_per_second: float) -> float:
    """Return the seconds to rest after a pull, so that its bytes come to no more than this on average."""
    return received / bytes_per_second - took
