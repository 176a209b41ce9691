"""Rules of a lane: its sections of the site file, and constants that no site file sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gateway.site import EventsSection, LaneInput, LaneSection, PointRef, PolicySection, Role, RoleSpec, Site
from gateway.texts import Words, text

CLOSE_TRIES = 3
"""Closes that are sent before a person is alerted."""
OPEN_TRIES = 3
"""Opens that are sent to keep a gate open, or to open it again, before a person is alerted; no limit in a fire."""
PAUSE_SECONDS = 5.0
"""How long the gate is left alone after a command that failed."""
LEAVING_SECONDS = 10.0
"""How long a vehicle that has just passed may need to leave the loops: until then a loop may be on because of it."""
WAITED_SECONDS = 10.0
"""Seconds on the arming loop after which a vehicle counts as one that waits for a card."""
IN_A_ROW = 3
"""So many cards without a vehicle, or vehicles without a card, in a row are no chance."""
DOUBTED_SECONDS = 60.0
"""How long the clock must be untrusted before a lane with schedules reports it: at each start it is for a moment."""
RESTING_STUCK_SECONDS = 60.0
"""Seconds after which an input that is on under the gate of a resting lane is stuck, if the site file allows more."""
LATE_OPENING_SECONDS = 60.0
"""How long after an unanswered open an opening without a cause counts as its late effect."""


class Side(StrEnum):
    """The side from which a vehicle comes. `FAR`, in a two-way lane only, is the side of leaving vehicles."""

    NEAR = "near"
    FAR = "far"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.FAR if self is Side.NEAR else Side.NEAR


@dataclass(frozen=True, slots=True)
class NamedInput:
    """An input of a lane with its name for people. `index`: its place among those of its role, from 0."""

    role: Role
    index: int
    ref: PointRef
    name: str
    spec: RoleSpec

    @property
    def words(self) -> Words:
        """Its name in a sentence; of a point that the site file names, that name."""
        return self.name if self.spec.many else text(f"point.{self.role}")


@dataclass(frozen=True, slots=True)
class LaneRules:
    """The parts of the site file that a lane works by.

    Attributes:
        lane: the lane's own section.
        policy: the rules for the whole site.
        events: how much footage is kept around an event.
        safety_names: the names of the lane's safety points, in their order.
        boot: distinguishes the command ids of this run of the program from all others.
        has_position: whether anything reports where the gate is. If not, a command that the controller has taken counts
            as done.
        inputs: the lane's inputs with their names for people.
    """

    lane: LaneSection
    policy: PolicySection
    events: EventsSection
    safety_names: tuple[str, ...]
    boot: str
    has_position: bool = True
    inputs: tuple[NamedInput, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Name each input once: the machine needs them at each step."""
        object.__setattr__(self, "inputs", tuple(self._named(one) for one in self.lane.ordered_inputs))

    @classmethod
    def of(cls, site: Site, lane: LaneSection, *, boot: str, has_position: bool = True) -> LaneRules:
        """Return the rules of a lane of this site."""
        names = _safety_names(site, lane)
        return cls(lane, site.policy, site.events, safety_names=names, boot=boot, has_position=has_position)

    def _named(self, one: LaneInput) -> NamedInput:
        name = self.safety_names[one.index] if one.spec.many else one.spec.name
        return NamedInput(one.role, one.index, one.ref, name, one.spec)

    @property
    def two_way(self) -> bool:
        """True when vehicles come from both sides."""
        return self.lane.direction == "two-way"

    @property
    def closes_itself(self) -> bool:
        """True when the gate's own controller closes it; the gateway then never sends close by itself."""
        return self.lane.closes == "device"

    @property
    def travel_seconds(self) -> float:
        """The longest time that the gate needs from one end to the other."""
        return max(self.lane.opening_seconds, self.lane.closing_seconds)

    def direction_of(self, side: Side) -> str:
        """Return which way a vehicle from this side goes: "entry" or "exit"."""
        if not self.two_way:
            return self.lane.direction
        return "entry" if side is Side.NEAR else "exit"


def _safety_names(site: Site, lane: LaneSection) -> tuple[str, ...]:
    """Return the names of the lane's safety points; with their device where two points have the same name."""
    devices = {device.id: device.name for device in site.devices}
    points = [ref.point for ref in lane.points(Role.SAFETY)]
    return tuple(
        ref.point if points.count(ref.point) == 1 else f"{ref.point} of {devices.get(ref.device, ref.device)}"
        for ref in lane.points(Role.SAFETY)
    )
