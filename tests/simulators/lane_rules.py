"""Rules of a lane for tests of its machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.lanes.machine.rules import LaneRules
from gateway.site import EventsSection, InputSection, LaneSection, PointRef, PolicySection, Role

POINT = PointRef(device=101, point="x")
_LANE = LaneSection(
    id="in",
    name="In",
    gate=101,
    readers=(102,),
    cameras=(201, 202),
    inputs=tuple(
        InputSection(role=role, device=POINT.device, point=POINT.point) for role in (Role.ARMING, Role.CLOSING)
    ),
    closes="gateway",
)


def lane_rules(*, boot: str = "b", safety_points: int = 1, **changes: Any) -> LaneRules:
    """Return rules with these fields of the lane's section or of the policy, whatever their limits."""
    names = tuple(f"safety point {number}" for number in range(1, safety_points + 1))
    rules = LaneRules(lane=_LANE, policy=PolicySection(), events=EventsSection(), safety_names=names, boot=boot)
    return changed(rules, **{"safety": (POINT,) * safety_points, **changes})


def changed(rules: LaneRules, **changes: Any) -> LaneRules:
    """Return rules with other fields of the lane's section or of the policy, whatever their limits.

    A role's name stands for the points of the lane's inputs with this role: one, several, or None.
    """
    points = {Role(name): changes.pop(name) for name in [*changes] if name in set(Role)}
    if points:
        changes["inputs"] = (
            *(one for one in rules.lane.inputs if one.role not in points),
            *(
                InputSection(role=role, device=ref.device, point=ref.point)
                for role, refs in points.items()
                for ref in (refs if isinstance(refs, tuple) else (refs,))
                if ref is not None
            ),
        )
    policy = {name: value for name, value in changes.items() if name in PolicySection.model_fields}
    lane = {name: value for name, value in changes.items() if name in LaneSection.model_fields}
    assert len(policy) + len(lane) == len(changes), "there are no such fields"
    return replace(rules, lane=rules.lane.model_copy(update=lane), policy=rules.policy.model_copy(update=policy))
