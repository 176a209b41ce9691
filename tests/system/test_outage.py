"""A bad line to central and kill -9, over real sockets and processes; `make outage` goes on for minutes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import outage_rounds
import pytest

pytestmark = pytest.mark.long("rounds of outages and kills")


@pytest.mark.timeout(400)
def test_after_a_bad_line_and_a_kill_both_sides_hold_the_same_each_thing_once():
    seed = 11
    folder = Path(tempfile.mkdtemp(prefix="eg-"))  # short: Unix sockets have short names
    try:
        outcome = outage_rounds.run(folder, seconds=3.0, seed=seed, kills=1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert not outcome.faults, f"seed {seed}: {outcome.faults}\n{outcome.log}"
    assert outcome.counts["kill -9"] == 1
    assert outcome.held["cards"] > 0
