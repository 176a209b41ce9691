"""A few rounds of kill -9 and torn writes; `make rounds` does three hundred."""

from __future__ import annotations

import random

import kill_rounds
import pytest

pytestmark = pytest.mark.long("rounds of kills")


def test_no_kill_breaks_a_promise(tmp_path):
    """A dozen rounds at least, and as many as a slow machine needs to record enough to lose something."""
    (tmp_path / "site").mkdir()
    for tally in kill_rounds.rounds(tmp_path / "site", 60, seed=random.randrange(10**6)):
        seen = tally.seen
        if tally.rounds >= 12 and seen["clips decoded"] > 0 and seen["segments"] > 100:
            break
    assert seen["clips decoded"] > 0
    assert seen["segments"] > 100
