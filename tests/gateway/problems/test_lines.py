"""The problems of lines: one that fails as a whole stands for those of its devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drivers.bus.line_quality import Failure, LineQuality, UnitQuality
from drivers.contract import Cause
from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.problems.advice import steps_by_cause, steps_of_device
from gateway.problems.lines import SiteLine, cause_of, is_garbled, problem_of_line, problems_beside

GATE, INPUTS = 101, 102


def unit(number, *, failing=None, losses=0, reply_seconds=0.01):
    return UnitQuality(
        unit=number,
        reply_times=(),
        failed={},
        reply_seconds=reply_seconds,
        allowed_seconds=0.3,
        failing=failing,
        failures=0 if failing is None else 3,
        losses=losses,
    )


def line(*units, down="", strays=0, devices=None):
    quality = LineQuality(name="yard", down_reason=down, strays=strays, units=units)
    return SiteLine(quality, {1: (GATE,), 2: (INPUTS,)} if devices is None else devices)


def devices(*, online):
    return {
        number: DeviceSnapshot(number, name, "modbus-gate", online, since, "", None, ())
        for number, name, since in ((GATE, "Barrier", 7), (INPUTS, "Loops", 5))
    }


AWAY = devices(online=False)
THERE = devices(online=True)
HINDERED = {GATE: ["Entry"], INPUTS: ["Entry", "Exit"]}


@pytest.mark.parametrize(
    ("failing", "down", "kind", "words"),
    [
        ((None, None), "no such port", K.LINE_DOWN, "line yard is down: no such port"),
        ((Failure.SILENT, Failure.SILENT), "", K.LINE_SILENT, "no unit answers on line yard"),
        ((Failure.SILENT, Failure.GARBLED), "", K.LINE_GARBLED, "what comes on line yard cannot be understood"),
        (
            (Failure.ECHOED, Failure.SILENT),
            "",
            K.LINE_ECHOES,
            "line yard sends back what is sent on it, and no unit answers",
        ),
    ],
)
def test_a_line_that_fails_is_one_problem_with_all_its_devices_and_lanes(failing, down, kind, words):
    yard = line(*(unit(number, failing=how) for number, how in enumerate(failing, start=1)), down=down)
    problem = problem_of_line(yard, AWAY, HINDERED)
    assert (problem.kind, problem.part, problem.id) == (kind, "line", "yard")
    assert str(problem.text) == f"{words}; on it: Barrier, Loops"
    assert (problem.lanes, problem.since, problem.severity) == (("Entry", "Exit"), 5, Severity.ALARM)


def test_a_line_whose_units_answer_behind_an_untold_echo_is_a_problem_that_stops_nothing():
    quality = LineQuality(name="yard", down_reason="", strays=0, units=(unit(1), unit(2)), echoes=True)
    (problem,) = problems_beside(SiteLine(quality, {1: (GATE,), 2: (INPUTS,)}), THERE)
    assert (problem.kind, problem.id, problem.severity) == (K.LINE_ECHOES, "yard", Severity.WARNING)
    assert "its settings do not say so" in str(problem.text)
    assert problem_of_line(SiteLine(quality, {1: (GATE,), 2: (INPUTS,)}), AWAY, HINDERED).severity is Severity.ALARM


def spoilt(cause, violation, *, is_serial=False):
    units = (replace(unit(1, failing=Failure.GARBLED), violation=violation, cause=cause),)
    quality = LineQuality(name="yard", down_reason="", strays=0, units=units, is_serial=is_serial)
    return SiteLine(quality, {1: (GATE,)})


@pytest.mark.parametrize("cause", list(Cause))
def test_advice_follows_from_a_known_cause(cause):
    yard = spoilt(cause, "unit 0 answered a request to unit 1")
    problem = problem_of_line(yard, AWAY, HINDERED)
    assert str(problem.text) == (
        "what comes on line yard cannot be understood: unit 0 answered a request to unit 1; on it: Barrier"
    )
    assert problem.steps == steps_by_cause(cause) != ()
    assert cause_of((yard,), GATE) is cause
    assert cause_of((yard,), INPUTS) is None


@pytest.mark.parametrize("failing", [Failure.GARBLED, Failure.SILENT])
def test_a_line_over_the_network_gets_no_advice_about_its_wires_ends_and_serial_settings(failing):
    units = (unit(1, failing=failing), unit(2, failing=failing))
    quality = LineQuality(name="yard", down_reason="", strays=0, units=units, is_serial=False)
    both = {1: (GATE,), 2: (INPUTS,)}
    over_network = " ".join(map(str, problem_of_line(SiteLine(quality, both), AWAY, HINDERED).steps))
    serial = " ".join(map(str, problem_of_line(SiteLine(replace(quality, is_serial=True), both), AWAY, HINDERED).steps))
    assert "parity" not in over_network
    assert "120 ohms" not in over_network
    assert "parity" in serial


def test_a_refused_connection_is_no_fuse():
    quality = LineQuality(name="yard", down_reason="refused", strays=0, units=(), down_cause=Cause.REFUSED)
    cause = cause_of((SiteLine(quality, {1: (GATE,)}),), GATE)
    steps = " ".join(map(str, steps_of_device(cause, K.GATE_OFFLINE)))
    assert "its fuse" not in steps
    assert "one connection at a time" in steps
    assert "by hand" in steps
    assert steps_of_device(None, K.GATE_OFFLINE) == ()
    assert steps_of_device(cause, K.DEVICE_TAMPERED) == ()


def test_a_line_is_no_problem_while_a_device_of_it_counts_as_there():
    yard = line(unit(1, failing=Failure.SILENT), unit(2, failing=Failure.SILENT))
    assert problem_of_line(yard, AWAY | {GATE: THERE[GATE]}, HINDERED) is None
    assert problem_of_line(yard, devices(online=None), HINDERED) is None, "not before the first answer or loss"


def test_a_single_device_that_does_not_answer_is_its_own_problem_and_one_that_is_not_understood_its_lines():
    alone = {1: (GATE,)}
    assert problem_of_line(line(unit(1, failing=Failure.SILENT), devices=alone), AWAY, HINDERED) is None
    assert problem_of_line(line(down="refused", devices=alone), AWAY, HINDERED) is None
    spoilt = line(unit(1, failing=Failure.GARBLED), devices=alone)
    assert problem_of_line(spoilt, AWAY, HINDERED).kind is K.LINE_GARBLED


def test_a_unit_whose_answers_are_garbled_beside_others_that_answer_well():
    beside = (line(unit(1), unit(2, failing=Failure.GARBLED)),)
    assert is_garbled(beside, INPUTS)
    assert not is_garbled(beside, GATE)
    assert not is_garbled((line(unit(1), unit(2, failing=Failure.SILENT)),), INPUTS)


def test_units_that_answer_badly_are_problems_that_stop_nothing():
    yard = line(unit(1, losses=8), unit(2, reply_seconds=0.2))
    shaky, slow = problems_beside(yard, THERE)
    assert (shaky.kind, shaky.id) == (K.UNIT_UNRELIABLE, str(GATE))
    assert str(shaky.text) == "Barrier fell silent 8 times within its last 100 requests"
    assert (slow.kind, slow.id) == (K.UNIT_SLOW, str(INPUTS))
    assert str(slow.text) == "Loops answers slowly: after 200 ms, of 300 ms that its profile allows"
    assert shaky.severity is Severity.WARNING
    assert list(problems_beside(yard, AWAY)) == [], "who is away has a problem of its own"


def test_a_line_is_disturbed_while_all_its_units_answer_well():
    (disturbed,) = problems_beside(line(unit(1), unit(2), strays=5), THERE)
    assert (disturbed.kind, disturbed.id) == (K.LINE_DISTURBED, "yard")
    assert list(problems_beside(line(unit(1), unit(2), strays=4), THERE)) == []
    kinds = [one.kind for one in problems_beside(line(unit(1), unit(2, losses=8), strays=5), THERE)]
    assert kinds == [K.UNIT_UNRELIABLE]
