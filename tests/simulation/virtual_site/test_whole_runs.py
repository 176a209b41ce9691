"""Whole runs with sound parts: every promise is kept, and a seed gives its run again."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app
from simulation.virtual_site import Plan, agenda, director, simulate

SHORT = Plan(days=1.0, lanes=3, seed=7, vehicles=100)


@pytest.fixture(scope="module")
def short_run():
    return simulate(SHORT)


def explain(report):
    return "\n".join(f"seed {report.plan.seed}: {item.promise}: {item.text}" for item in report.violations)


@pytest.mark.long("whole days of a site")
def test_a_day_with_faults_keeps_every_promise(short_run):
    assert short_run.passed, explain(short_run)


@pytest.mark.long("whole days of a site")
def test_everything_was_injected_and_traffic_flowed(short_run):
    kinds = {name.removeprefix("injected ") for name in short_run.counts if name.startswith("injected ")}
    assert {
        "loop drops out under vehicles",
        "input stuck",
        "line jammed",
        "late replies",
        "central away",
        "clock steps",
        "disk hangs",
    } <= kinds
    assert any(kind.startswith("power cut") for kind in kinds)
    assert short_run.counts["passage passed"] > 150
    assert short_run.counts["event power_lost"] >= 1
    assert short_run.simulated_seconds > 86_400


@pytest.mark.long("whole days of a site")
def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    plan = Plan(days=0.3, lanes=3, seed=7, vehicles=150, faults=3.0)
    one, again, other = simulate(plan), simulate(plan), simulate(replace(plan, seed=8))
    assert one.counts["passage passed"] > 15
    assert (again.digest, again.steps, again.counts) == (one.digest, one.steps, one.counts)
    assert other.digest != one.digest


FOUR_LANES = Plan(days=0.3, lanes=4, seed=7, vehicles=60)
"""Their entries and exits alternate, so that few rows go up together."""


def test_hours_with_faults_keep_every_promise():
    report = simulate(replace(FOUR_LANES, days=0.1, vehicles=20))
    assert report.passed, explain(report)
    assert report.counts["passage passed"]


@pytest.mark.long("a fresh seed; `make seeds` runs many")
def test_a_fresh_seed_keeps_every_promise():
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"fresh seed: {seed}")
    report = simulate(replace(FOUR_LANES, seed=seed))
    assert report.passed, explain(report)


@pytest.mark.long("whole days of a site")
def test_what_waits_goes_up_while_central_is_there():
    """Entries and exits alternate, so that few rows go together, and central is away for hours now and then."""
    report = simulate(Plan(days=5, lanes=4, seed=777))
    assert report.passed, explain(report)


def test_a_run_that_is_to_end_while_the_power_is_off_ends(monkeypatch):
    cut = agenda.Trouble(at=60.0, kind=agenda.Fault.POWER_CUT, lane=0, seconds=100.0, chance=0.0)
    monkeypatch.setattr(director, "day", lambda *_: [cut, replace(cut, at=90.0)])
    is_off = "injected power cut between commits"
    report = simulate(Plan(days=1, lanes=2, seed=3), enough=lambda witness: is_off in witness.counts)
    assert report.passed, explain(report)
    assert 90 < report.simulated_seconds < 161


def test_without_faults_nothing_is_injected():
    report = simulate(Plan(days=0.2, lanes=1, seed=3, faults=0.0))
    assert report.passed, explain(report)
    assert not [name for name in report.counts if name.startswith("injected ")]


def test_the_command_line_reports_as_json(tmp_path):
    file = tmp_path / "report.json"
    arguments = ["simulate", "--days", "0.05", "--lanes", "1", "--seed", "5", "--report", str(file)]
    result = CliRunner().invoke(app, arguments, obj=Invocation())
    assert result.exit_code == 0, result.output
    assert "0 violations" in result.output
    facts = json.loads(file.read_text())
    assert facts["passed"] is True
    assert facts["plan"]["seed"] == 5
    assert facts["counts"]["command open written"] > 0
