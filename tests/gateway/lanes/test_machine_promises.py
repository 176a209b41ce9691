"""Promises 1 and 2 under any order of events: no unsafe close, no command twice, none without its cause."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.contract import GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.credentials import Card, Credential
from gateway.lanes import messages as m
from gateway.lanes.safety import why_not_close
from gateway.lanes.state import LaneRules

points = st.sampled_from(list(PointState))
steps = st.one_of(
    st.tuples(st.just("arming"), points),
    st.tuples(st.just("closing"), points),
    st.tuples(st.just("safety"), points),
    st.tuples(st.just("gate"), st.sampled_from(list(GatePosition))),
    st.tuples(st.just("read"), st.booleans()),
    st.tuples(st.just("decided"), st.booleans()),
    st.tuples(st.just("wish"), st.sampled_from(list(GateAction))),
    st.tuples(st.just("acknowledged"), st.none()),
    st.tuples(st.just("failed"), st.booleans()),
    st.tuples(st.just("lost"), st.none()),
    st.tuples(st.just("regained"), st.none()),
    st.tuples(st.just("wait"), st.floats(0.01, 40)),
    st.tuples(st.just("refresh"), st.none()),
)


@settings(max_examples=400, deadline=None)
@given(script=st.lists(steps, max_size=60), own=st.booleans())
def test_no_unsafe_close_no_command_twice_none_without_cause(script, own, make_script):
    rules = LaneRules(lane_id="in", direction="entry", gate_id=101, boot="b", safety_points=1, closes_itself=own)
    lane = make_script(rules)
    lane.ready()
    causes = 0
    for what, value in script:
        before = len(lane.sent)
        match what:
            case "arming":
                lane.arming(value)
            case "closing":
                lane.closing(value)
            case "safety":
                lane.safety(value)
            case "gate":
                lane.gate(value)
            case "read":
                lane.do(m.CardRead(102, Credential(text="0007" if value else "1"), lane.at))
            case "decided":
                cards = (Card(7, "0007"),) if value else ()
                causes += value
                lane.do(m.Decided(lane.state.decisions, decide(Credential(text="0007"), cards, now=0)))
            case "wish":
                causes += value is GateAction.OPEN
                lane.wish(value)
            case "acknowledged" if lane.state.flight:
                lane.do(m.CommandAcknowledged(lane.state.flight.command.command_id, lane.at))
            case "failed" if lane.state.flight:
                lane.do(m.CommandFailed(lane.state.flight.command.command_id, "x", sent=value))
            case "lost":
                lane.do(m.GateLost("unplugged"))
            case "regained":
                lane.do(m.GateRegained())
            case "wait":
                lane.wait(value, refresh=False)
            case "refresh":
                lane.refresh()
        for command in lane.sent[before:]:
            if command.action is GateAction.CLOSE:
                assert why_not_close(lane.rules, lane.state, lane.at) == ""
                assert not own or command.source != "lane"
    ids = [command.command_id for command in lane.sent]
    assert len(ids) == len(set(ids))
    assert sum(command.action is GateAction.OPEN for command in lane.sent) <= causes
    finished = {CommandState.DONE, CommandState.REFUSED, CommandState.UNKNOWN}
    open_ones = [i for i in ids if lane.reached.get(i) not in finished]
    assert len(open_ones) <= 1, "only the command under way may be unfinished"
