"""The long rounds of the Makefile, each once and small: they still run, and their own checks hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long("whole sites as programs")

SIMULATORS = Path(__file__).parents[1] / "simulators"


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        ("seed_runs", "--days 0.05 --lanes 2 --seeds 11,12", "2 seeds of 0.05 days with 2 lanes: 0 violations"),
        ("soak", "--minutes 0.25 --svg {folder}/soak.svg", "memory: "),
        (
            "many_sites",
            "--sites 8 --seconds 1 --rate 20 --burst 3 --commands 8 --away 1",
            "each in the stream once and in order",
        ),
        ("idle_traffic", "--seconds 2 --warm 1", "at central with ETag alone, a day:"),
    ],
)
def test_the_rounds_run(program, words, said, tmp_path):
    """Of a soak so short, memory that still grows says nothing: only its end by itself, with a report, counts."""
    command = [sys.executable, str(SIMULATORS / f"{program}.py"), *words.format(folder=tmp_path).split()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert said in ended.stdout, ended.stdout[-4000:] + ended.stderr[-4000:]
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0 or program == "soak"
