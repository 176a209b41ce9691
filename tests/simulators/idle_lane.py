"""A lane as it is shown while nobody is there and nothing is wrong; tests change what they need."""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.lanes.snapshots import LaneSnapshot, Phase

GATE = 101
IDLE = LaneSnapshot(
    lane_id="entry",
    name="Entry",
    direction="entry",
    phase=Phase.IDLE,
    since=1,
    gate_id=GATE,
    position=GatePosition.CLOSED,
    vehicle=PointState.OFF,
    under=PointState.OFF,
    note="",
)
