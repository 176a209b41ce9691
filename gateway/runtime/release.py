"""The date of this release."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

RELEASED: Final = datetime(2026, 11, 28, tzinfo=UTC)
"""The day on which this release was made, set with the version. It cannot be earlier on a box that runs it."""
RELEASED_AT: Final = int(RELEASED.timestamp()) * 1_000_000
"""The same in wall micros."""
