"""A hundred power cuts on real traffic; `make power-cuts` does ten thousand. A disk that forgets to flush is found."""

from __future__ import annotations

import random
from pathlib import Path

import power_cuts
import pytest

pytestmark = pytest.mark.long("rounds of power cuts")

STEPS = 24
CUTS = 100
MOST_UNTIL_FOUND = 300


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    try:
        return power_cuts.record(tmp_path_factory.mktemp("recorded"), steps=STEPS)
    except power_cuts.NoCompiler as missing:
        pytest.skip(str(missing))


def test_no_cut_breaks_a_promise(recording, tmp_path):
    seed = random.randrange(10**6)
    cuts = power_cuts.planned(recording, seed=seed, numbers=range(CUTS))
    broken = [
        f"seed {seed}, {power_cuts.told(cut)}: {why}"
        for cut, why in power_cuts.carry_out(recording, cuts, seed=seed, work=tmp_path / "disk")
        if why
    ]
    assert not broken, "\n".join(broken)


def test_no_cut_of_a_first_start_makes_the_media_folder_look_unmounted(recording, tmp_path):
    """Its marker is recorded in the first calls, where few of the cuts above fall."""
    recorded = next(
        turn for turn, call in enumerate(recording.calls, 1) if call.data.rstrip(b"\0").endswith(b"/media.uuid")
    )
    cuts = [power_cuts.Cut(number, recorded, "torn", page_fails=False) for number in range(30)]
    assert not [why for _, why in power_cuts.carry_out(recording, cuts, seed=1, work=tmp_path / "disk") if why]


@pytest.mark.parametrize("forgotten", ["site.db-wal", "*.part", "7/*", "evidence", "access.log"])
def test_a_flush_that_is_left_out_is_found(recording, tmp_path, forgotten):
    def forgets(path: str) -> bool:
        return Path(path).match(forgotten)

    cuts = power_cuts.planned(recording, seed=5, numbers=range(MOST_UNTIL_FOUND))
    outcomes = power_cuts.carry_out(recording, cuts, seed=5, work=tmp_path / "disk", forget=forgets)
    assert any(why for _, why in outcomes)
