"""Planted bugs: each test puts one broken part in place, and the check of its promise finds it."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest
from rich.console import Console

from drivers.contract import CardPresented
from drivers.gates.polls import PollPace
from gateway.domain.access import decide
from gateway.domain.credentials import CardStatus
from gateway.lanes import Lanes, decisions, runner
from gateway.lanes.machine import closing, reopening, safety
from gateway.lanes.machine import messages as m
from gateway.runtime.clock import Stamp
from gateway.store import Store
from simulation.virtual_site import Parts, Plan, agenda, director, simulate
from simulation.virtual_site.checks import ClosingCheck
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.gate import SimulatedGate
from simulation.virtual_site.report import show
from simulation.virtual_site.virtual_time import VirtualClock


class HastyGate(SimulatedGate):
    """Closes without the last question."""

    async def close(self, *, deadline, forbidden):
        await super().close(deadline=deadline, forbidden=lambda: "")


class PatientDriver:
    """A driver that waits for the line however long that takes."""

    def __init__(self, driver):
        self._driver = driver
        self.run, self.watch_closely = driver.run, driver.watch_closely

    async def open(self, *, deadline, forbidden):
        await self._driver.open(deadline=deadline + 600, forbidden=forbidden)

    async def close(self, *, deadline, forbidden):
        await self._driver.close(deadline=deadline + 600, forbidden=forbidden)

    async def stop(self, *, deadline, forbidden):
        await self._driver.stop(deadline=deadline + 600, forbidden=forbidden)


class PatientGate(SimulatedGate):
    """Has a patient driver."""

    def __init__(self, **of_a_life):
        super().__init__(**of_a_life)
        self._gate = PatientDriver(self._gate)


class ReplayingLanes(Lanes):
    """Sends again what the last run left open."""

    async def settle_unfinished(self):
        for command in await self._store.commands.unfinished():
            gate = self._by_gate[command.device_id]
            gate.post(m.CommandRequested(command, deadline=self._clock.monotonic() + 600))
        return 0


class SlowLanes(Lanes):
    """Lets cards wait for something else."""

    def report(self, report):
        if isinstance(report, CardPresented):
            asyncio.get_running_loop().call_later(0.5, super().report, report)
        else:
            super().report(report)


class LyingDisk(Disk):
    """Says that everything is on disk, and loses all since the last start in a power cut."""

    def restarted(self):
        super().restarted()
        shutil.rmtree(self.folder.with_name("kept"), ignore_errors=True)
        shutil.copytree(self.folder, self.folder.with_name("kept"))

    def cut_now(self):
        super().cut_now()
        self._lose()

    def cut_at_next_commit(self, kind, then):
        def lose_then():
            self._lose()
            then()

        super().cut_at_next_commit(kind, lose_then)

    def _lose(self):
        kept = self.folder.with_name("kept")
        if kept.exists():
            shutil.rmtree(self.folder)
            shutil.copytree(kept, self.folder)


class ProudClock(VirtualClock):
    """Trusts itself always."""

    def wall(self):
        return Stamp(super().wall().micros, trusted=True)


def forgetful_store(**keywords):
    """Deliveries are not counted."""
    store = Store(**keywords)

    async def delivered(row, **_):
        await store.database.write(lambda connection: connection.execute("DELETE FROM outbox WHERE id = ?", (row.id,)))
        return row.record_id

    async def delivered_together(deliveries, **_):
        for delivery in deliveries:
            await delivered(delivery.row)

    store.outbox.delivered, store.outbox.delivered_together = delivered, delivered_together
    return store


def lenient_store(**keywords):
    """Every card looks active."""
    store = Store(**keywords)
    matching, at_once = store.cards.matching, store.cards.at_once

    def all_active(cards):
        return None if cards is None else tuple(replace(card, status=CardStatus.ACTIVE) for card in cards)

    async def lenient(aliases):
        return all_active(await matching(aliases))

    store.cards.matching = lenient
    store.cards.at_once = lambda aliases: all_active(at_once(aliases))
    return store


class FollowingClock(VirtualClock):
    """Follows whatever the machine's clock is set to."""

    def wall(self):
        return Stamp(self.true_micros() + self._offset, trusted=self._trusted)


def expiring_decide(credential, cards, **circumstances):
    """Cards end a month after the beginning."""
    ends = 1_772_323_200_000_000 + 30 * 86_400_000_000
    ending = tuple(replace(card, valid_until=min(card.valid_until or ends, ends)) for card in cards)
    return decide(credential, ending, **circumstances)


def broken(promise):
    return lambda witness: any(name.startswith(promise) for name in witness.violated)


@pytest.mark.long("up to twenty days of a site")
@pytest.mark.parametrize(
    ("parts", "promise", "seed"),
    [
        pytest.param(Parts(gate=HastyGate), "1", 6, id="close without the last question"),
        pytest.param(Parts(gate=PatientGate), "2", 7, id="command after its deadline"),
        pytest.param(Parts(lanes=ReplayingLanes), "2", 7, id="command replayed"),
        pytest.param(Parts(disk=LyingDisk), "3", 7, id="disk that lies"),
        pytest.param(Parts(clock=ProudClock), "9", 7, id="clock that trusts itself"),
        pytest.param(Parts(store=lenient_store), "decisions", 7, id="bad cards let in"),
    ],
)
def test_a_planted_bug_is_found(parts, promise, seed):
    """On each seed sooner or later; these are seeds on which it is soon."""
    report = simulate(Plan(days=20, lanes=2, seed=seed, faults=4.0), parts=parts, enough=broken(promise))
    assert any(name.startswith(promise) for name in report.violated), report.violated


def test_deliveries_that_are_not_counted_are_found():
    """The books are compared where a run ends, so it is a short one."""
    report = simulate(Plan(days=0.3, lanes=2, seed=7, vehicles=20), parts=Parts(store=forgetful_store))
    assert any(name.startswith("4") for name in report.violated), report.violated


@pytest.mark.long("up to twenty days of a site")
def test_cards_expired_by_a_wrong_clock_are_found(monkeypatch):
    monkeypatch.setattr(decisions, "decide", expiring_decide)
    plan = Plan(days=20, lanes=2, seed=7, faults=4.0)
    report = simulate(plan, parts=Parts(clock=FollowingClock), enough=broken("9"))
    assert "9 clock steps do no harm" in report.violated
    assert not simulate(replace(plan, days=5)).violated, "the clock as it is follows no step"


@pytest.mark.long("up to twenty days of a site")
def test_a_close_on_the_first_reading_of_a_free_loop_is_found(monkeypatch):
    for part in (closing, runner):
        monkeypatch.setattr(part, "why_not_close", safety.what_forbids)
    report = simulate(Plan(days=20, lanes=2, seed=7, faults=4.0), enough=broken("1 close"))
    assert "1 close is never unsafe" in report.violated


@pytest.mark.long("up to twenty days of a site")
def test_a_loop_that_drops_out_for_longer_than_the_clear_time_would_be_a_vehicle_that_was_closed_on(monkeypatch):
    """The far end's own truth, not the reports': the clear time is what keeps the promise."""
    monkeypatch.setattr(safety, "what_is_not_clear", lambda *_: "")
    monkeypatch.setattr(ClosingCheck, "_fault_of", lambda *_: "")
    report = simulate(Plan(days=20, lanes=2, seed=7, faults=4.0), enough=broken("1 close"))
    assert "1 close is never unsafe" in report.violated


@pytest.mark.long("up to twenty days of a site")
def test_a_gate_that_goes_on_closing_is_found(monkeypatch):
    monkeypatch.setattr(reopening, "watch", lambda turn, job: False)
    report = simulate(Plan(days=20, lanes=2, seed=7, faults=4.0), enough=broken("1 what closes"))
    assert "1 what closes onto something is opened again" in report.violated


@pytest.mark.long("up to twenty days of a site")
def test_a_close_that_is_refused_and_ends_the_visit_is_found(monkeypatch):
    asked = closing.operator_closes

    def hasty(lane, event):
        asked(lane, event)
        lane.rest()

    plan = Plan(days=20, lanes=1, seed=7, vehicles=100)
    monkeypatch.setattr(closing, "operator_closes", hasty)
    assert "10 each passage is recorded" in simulate(plan, enough=broken("10")).violated


def stops_and_lost_controllers(plan, number):
    """Hours in which people stop the gate while it opens, and its controller loses power soon after."""
    usual = agenda.day(plan, number)
    for hour in range(1, int(plan.seconds // 3600)):
        at, lane = number * 86_400.0 + hour * 3600.0, hour % plan.lanes
        usual.append(agenda.Wish(at, lane, action=0.0, stops_after=0.5 + hour / 20))
        usual.append(agenda.Trouble(at + 6.0, agenda.Fault.AWAY, lane, 3.0, 0.5))
    return sorted(usual, key=lambda happening: happening.at)


def test_a_stop_that_a_lost_controller_ends_is_found(monkeypatch):
    lost = closing.gate_lost

    def forgetful(lane):
        lost(lane)
        lane.put(lane.state.stop.ended())
        closing.begin(lane)

    monkeypatch.setattr(director, "day", stops_and_lost_controllers)
    plan = Plan(days=0.4, lanes=2, seed=3, vehicles=20)
    assert not simulate(plan).violated
    monkeypatch.setattr(closing, "gate_lost", forgetful)
    assert "what a person stopped is not moved" in simulate(plan, enough=broken("what a person")).violated


@pytest.mark.long("up to a day of a site")
def test_a_lane_that_stays_polled_fast_is_found(monkeypatch):
    watched = PollPace.watch_closely
    monkeypatch.setattr(PollPace, "watch_closely", lambda pace, *, until: watched(pace, until=until + 60.0))
    report = simulate(Plan(days=1, lanes=2, seed=7), enough=broken("an idle lane"))
    assert list(report.violated) == ["an idle lane is polled at its pace"]


def test_a_task_that_fails_is_found(monkeypatch):
    monkeypatch.setattr(runner, "_SHORTEST_WAIT", "none")
    report = simulate(Plan(days=0.05, lanes=1, seed=7))
    assert "no task fails" in report.violated


@pytest.mark.long("up to twenty days of a site")
def test_cards_that_wait_are_found_and_shown_with_the_seed_the_step_and_what_led_to_it():
    report = simulate(Plan(days=20, lanes=2, seed=3, faults=4.0), parts=Parts(lanes=SlowLanes), enough=broken("6"))
    assert any(name.startswith("6") for name in report.violated), report.violated
    console = Console(width=300, record=True, quiet=True)
    with console.capture():
        show(report, console, took=1.0)
    console = Console(width=300)
    with console.capture() as printed:
        show(report, console, took=1.0)
    text = printed.get()
    assert "Promise broken: 6 no lane is delayed" in text
    assert "seed 3" in text
    assert f"step {report.violations[0].step}" in text
    assert len(report.violations[0].tape) == 30
