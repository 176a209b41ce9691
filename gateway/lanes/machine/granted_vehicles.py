"""Who is on their way through a lane: granted, and not yet counted where they go. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.domain.access import AccessRules, Coming, Decision
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.visits import HAS_RIGHT_OF_WAY


def coming(rules: LaneRules, state: LaneState, access: Mapping[str, AccessRules]) -> Iterator[Coming]:
    """The vehicle that has its right of way, and in a counted lane those that are owed a passage after it."""
    present = (
        (state.visits.present,) if state.visits.present is not None and state.visits.phase in HAS_RIGHT_OF_WAY else ()
    )
    for visit in (*present, *state.visits.owed):
        yield from granted(access[rules.direction_of(visit.side)], visit.decision)


def granted(rules: AccessRules, decision: Decision | None) -> Iterator[Coming]:
    """A vehicle with this decision on its way, None for one that a person lets in."""
    if rules.way:
        card = decision.card if decision is not None else None
        yield Coming(rules.lane_id, rules.way, rules.holder(card) if card is not None else "")
