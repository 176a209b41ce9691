"""Days without central: both sides hold the same afterwards, each thing once; and a gateway that loses is found out."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from gateway.central.pull.cards import CardPull
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.cli.app import Invocation, app
from gateway.store import Books
from simulation.far_ends.central import Chances
from simulation.virtual_site.outage import OutagePlan, simulate_outage

pytestmark = pytest.mark.long("whole simulations of days")

BRIEF = OutagePlan(days=0.3, vehicles=40, files=0, cuts_after=3, seed=4, drains_within=300.0)


def explain(report):
    return f"seed {report.plan.seed}: " + "\n".join(report.faults)


def test_after_three_days_without_central_both_sides_hold_the_same_each_thing_once():
    report = simulate_outage(OutagePlan(days=3.0, seed=1))
    assert report.passed, explain(report)
    assert report.books.balance()
    assert report.held["camera events"] > 80
    assert report.held["entries"] > 60
    assert report.held["files"] > 10
    assert report.counts["power cut"] > 20
    assert report.counts["card changed at the site"] > 20
    assert {"line silent", "line refused", "line leads to a portal"} <= report.counts.keys()
    assert sum(often for name, often in report.counts.items() if name.startswith("at central: ")) > 30


def test_a_gateway_that_counts_a_lost_answer_as_delivery_is_found_out(monkeypatch):
    async def taken_for_granted(self, row, error, *, at_central):
        await self._outbox.delivered(row, central_id=None)
        return True

    monkeypatch.setattr(OutboxSender, "_failed", taken_for_granted)
    report = simulate_outage(BRIEF)
    assert any("camera events are not at central" in fault for fault in report.faults), report.faults


def test_a_gateway_that_keeps_cards_that_central_deleted_is_found_out(monkeypatch):
    async def keep_all(self, gone, walk):
        return None

    monkeypatch.setattr(CardPull, "_let_go", keep_all)
    report = simulate_outage(OutagePlan(days=1.0, vehicles=5, cuts=0, central_changes=120, cuts_after=0, seed=4))
    assert any("cards are only at the site" in fault for fault in report.faults), report.faults


def test_a_gateway_that_forgets_files_is_found_out(monkeypatch):
    async def forget(self, row, reason):
        await self._evidence.drop_row(row)

    monkeypatch.setattr(EvidenceSender, "_put_off", forget)
    report = simulate_outage(OutagePlan(days=0.5, vehicles=40, files=20, cuts_after=1, seed=4))
    assert any("files are not at central" in fault for fault in report.faults), report.faults


def test_a_central_that_knows_no_keys_holds_each_thing_once_too():
    lossy = Chances(lost_answers=0.3)
    report = simulate_outage(OutagePlan(days=0.5, vehicles=60, cuts_after=6, seed=4, honours_keys=False, chances=lossy))
    assert report.passed, explain(report)


def test_the_command_says_what_came_of_it(tmp_path):
    words = ["simulate", "--outage", "--days", "0.1", "--seed", "3", "--report", str(tmp_path / "report.json")]
    answer = CliRunner().invoke(app, words, obj=Invocation())
    assert answer.exit_code == 0, answer.output
    assert "in step after 0.1 days" in answer.output
    assert '"passed": true' in (tmp_path / "report.json").read_text()


def test_the_same_seed_gives_the_same_course():
    plan = OutagePlan(days=0.2, vehicles=20, cuts=20, cuts_after=2, seed=6)
    one, other = simulate_outage(plan), simulate_outage(plan)
    assert (one.counts, one.held, one.simulated_seconds) == (other.counts, other.held, other.simulated_seconds)


def test_books_are_part_of_the_report():
    report = simulate_outage(OutagePlan(days=0.1, vehicles=10, cuts=0, cuts_after=0, seed=2))
    assert isinstance(report.books, Books)
    assert report.books.delivered > 0
