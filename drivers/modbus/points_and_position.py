"""Derivation of points and position from the values of a gate or an input module. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from drivers.contract import GatePosition, PointState
from drivers.gates.polls import limit_position
from drivers.modbus.messages import Table
from drivers.modbus.profile import GateProfile, RegisterPosition, UnitProfile

Held = Mapping[tuple[Table, int], int]
"""The values of a device, by table and wire address."""


def points_of(profile: UnitProfile, held: Held) -> dict[str, PointState]:
    """Return the named points, inverted where the profile says so; UNKNOWN where `held` lacks the value."""
    states: dict[str, PointState] = {}
    for name, point in profile.points.items():
        value = held.get((point.table, profile.wire_address(point.address)))
        if value is None:
            states[name] = PointState.UNKNOWN
        else:
            states[name] = PointState.ON if point.is_on(value) else PointState.OFF
    return states


def position_of(
    profile: GateProfile,
    held: Held,
    points: Mapping[str, PointState],
    *,
    before: GatePosition,
    commanded: GatePosition | None,
) -> GatePosition:
    """Derive the position from a poll.

    Args:
        profile: the gate's profile, which names the source of the position.
        held: the values of the poll.
        points: the named points of the same poll.
        before: the position that the poll before showed.
        commanded: the position to which the last command acknowledged since then leads: OPENING, CLOSING or STOPPED;
            None when there was no command.
    """
    source = profile.position
    if source is None:
        return GatePosition.UNKNOWN
    if isinstance(source, RegisterPosition):
        value = held.get((source.table, profile.wire_address(source.address)))
        return GatePosition.UNKNOWN if value is None else source.position(value)
    return limit_position(
        closed=points[source.closed_point], opened=points[source.open_point], before=before, commanded=commanded
    )
