"""The time at which a loss of central is reported."""

from __future__ import annotations

from structlog.testing import capture_logs

from gateway.central.client.state import CentralState, Reach
from gateway.runtime.clock import Stamp


class Hands:
    """A clock that is moved by hand."""

    now = 1000.0

    def monotonic(self):
        return self.now

    def wall(self):
        return Stamp(int(self.now * 1_000_000), trusted=True)


class Line:
    """The reports of exchanges at given seconds."""

    def __init__(self):
        self.clock = Hands()
        self.reach = Reach(clock=self.clock)
        self.state = CentralState()
        self.told = []

    def hears(self, at, *, reachable):
        self.clock.now = 1000.0 + at
        with capture_logs() as logs:
            self.state = self.reach.noted(self.state, reachable=reachable, error="" if reachable else "broken")
        self.told += [(line["event"], at) for line in logs]
        assert self.state.reachable is reachable
        assert self.state.last_error == ("" if reachable else "broken")


def test_each_outage_is_told_at_both_its_ends():
    line = Line()
    for at, reachable in (
        (0, True),
        (5, False),
        (6, False),
        (40, False),
        (41, True),
        (42, True),
        (90, False),
        (91, True),
    ):
        line.hears(at, reachable=reachable)
    assert line.told == [
        ("central_lost", 5),
        ("central_recovered", 41),
        ("central_lost", 90),
        ("central_recovered", 91),
    ]


def test_a_line_that_flickers_is_told_as_lost_once_it_is():
    line = Line()
    line.hears(0, reachable=False)
    line.hears(1, reachable=True)
    for tenth in range(20, 80):
        line.hears(tenth / 10, reachable=bool(tenth % 3))
    assert line.told == [("central_lost", 0), ("central_recovered", 1)]
    for at in range(9, 30):
        line.hears(at, reachable=False)
    assert line.told[2:] == [("central_lost", 19)]
    assert line.state.reported is False


def test_central_that_was_never_there_is_lost_at_once():
    line = Line()
    line.hears(0, reachable=False)
    assert (line.told, line.state.reported) == ([("central_lost", 0)], False)
