"""Sentences for lines and units: cause and fix by what is counted."""

from __future__ import annotations

import pytest

from drivers.bus.line_quality import Counts, Failure, LineQuality, UnitQuality
from gateway.web.status.lines import line_words, unit_words

GOOD_HOUR = Counts((0, 900, 0, 0, 0, 0, 0, 0, 0, 0), {Failure.SILENT: 2})


def unit(number, *, failing=None, losses=0, reply_seconds=0.01, hour=GOOD_HOUR):
    return UnitQuality(
        unit=number,
        reply_times=hour.reply_times,
        failed=hour.failed,
        reply_seconds=reply_seconds,
        allowed_seconds=0.3,
        failing=failing,
        failures=0 if failing is None else 3,
        losses=losses,
        hour=hour,
    )


def line(*units, down="", strays=0):
    return LineQuality(name="yard", down_reason=down, strays=strays, units=units)


@pytest.mark.parametrize(
    ("quality", "words"),
    [
        (line(unit(1)), "Every unit answers in time."),
        (line(), "No unit was asked yet."),
        (line(unit(1), down="the port is gone"), "the port is gone. Its port or its converter"),
        (line(unit(1, failing=Failure.SILENT)), "whether A and B are swapped"),
        (line(unit(1, failing=Failure.GARBLED)), "speed, parity or stop bits differ"),
        (line(unit(1, failing=Failure.ECHOED)), "the adapter hears itself"),
        (line(unit(1), strays=9), "another master"),
        (line(unit(1), unit(7, failing=Failure.SILENT)), "Others answer, but not unit 7 as it should."),
    ],
    ids=["good", "new", "down", "silent", "garbled", "echoes", "disturbed", "one-bad"],
)
def test_lines(quality, words):
    assert words in str(line_words(quality))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (unit(1), "It answers in time."),
        (unit(1, failing=Failure.SILENT), "check its supply"),
        (unit(1, failing=Failure.GARBLED), "two devices have this address"),
        (unit(1, losses=8), "a loose terminal"),
        (unit(1, reply_seconds=0.2), "after 200 ms, of 300 ms"),
        (unit(1, reply_seconds=None), "has not answered yet"),
        (unit(1, hour=Counts((0, 90), {Failure.GARBLED: 10, Failure.SILENT: 1})),
         "11 of 101 requests of the last hour failed, as by disturbance"),
        (unit(1, hour=Counts((0, 90), {Failure.LATE: 10})), "slower than its profile allows"),
    ],
    ids=["good", "silent", "garbled", "unreliable", "slow", "new", "garbled-now-and-then", "late-now-and-then"],
)  # fmt: skip
def test_units_beside_one_that_answers(one, words):
    assert words in str(unit_words(one, line(one, unit(2))))


def test_a_unit_of_a_line_that_fails_has_no_sentence_of_its_own():
    bad = unit(1, failing=Failure.SILENT)
    assert str(unit_words(bad, line(bad))) == "See the line."
