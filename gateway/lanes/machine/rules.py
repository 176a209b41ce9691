"""What a lane is told by the site file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Vend(StrEnum):
    """What an opening is worth, and who ends it.

    `MOMENTARY`: one opening, one passage, then the gate is closed. `COUNTED`: each opening is owed a passage, and the
    gate is closed once all have passed. `SUPERVISED`: the gate stays open until a person closes it.
    """

    MOMENTARY = "momentary"
    COUNTED = "counted"
    SUPERVISED = "supervised"


class Side(StrEnum):
    """From where a vehicle comes: `FAR` is the other side of a two-way lane, that of the leaving vehicles."""

    NEAR = "near"
    FAR = "far"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.FAR if self is Side.NEAR else Side.NEAR


@dataclass(frozen=True, slots=True)
class LaneRules:
    """What a lane is told by the site file. Times are seconds.

    Attributes:
        boot: distinguishes the command ids of this run of the program from all others.
        safety_names: what the site file calls its safety points, in their order.
        closes_itself: the gate's own controller closes it; the gateway never sends close by itself.
        command_life: from a command's birth to its deadline.
        stale: age from which a position or an input is unknown.
        opening: how long an opening may take.
        closing: how long a closing may take.
        waiting: how long an opened gate waits for a vehicle that was never seen.
        back_out: both loops free for this long after a grant means that the vehicle left backwards.
        clear: every closing point must have been off for this long before a close.
        clear_after_loss: the same after it was not known: at the start, and after its device was away.
        close_pause: how long the gate is left alone after a close that failed.
        close_tries: how many closes are sent before a person is called.
        two_way: vehicles come from both sides; `direction` is then "two-way".
        vend: what an opening is worth.
        fire_input: the lane has a fire input.
        local_input: the lane has an input for its key switch.
        far_readers: readers on the far side of a two-way lane.
        hold_tries: how many opens are sent to hold a gate open before a person is called; for a fire without limit.
        held_open: how long a gate may be off its closed limit before that is told.
        forced: how long a gate may be off it without a reason.
        vehicle_stuck: how long a vehicle may stand under the gate.
        input_stuck: how long an input may be on.
        leaving: for so long the far loop belongs to the vehicle that has just passed.
        doubted: a clock that is not trusted for this long is told where the lane has schedules: each start begins so.
        late_opening: for so long an opening without a cause is taken for the late effect of an unanswered open.
        card_early: how long before its vehicle is seen on the arming loop a card may be read: loops are polled.
        pin: a card is decided on only together with a PIN.
        pin_length: so many digits end a PIN without `#`.
        pin_patience: how long a card waits for its PIN.
        second_within: how long a first credential waits for its second, where two are wanted.
        plate_settle: how long readings of a plate are collected.
        plate_sure: a reading with this confidence is taken at once.
        plate_least: readings with less confidence do not count.
        plate_early: how long before its vehicle reaches the arming loop a plate may be read.
    """

    lane_id: str
    direction: str
    gate_id: int
    boot: str
    safety_points: int = 0
    safety_names: tuple[str, ...] = ()
    cameras: tuple[int, ...] = ()
    closes_itself: bool = True
    command_life: float = 5.0
    stale: float = 5.0
    opening: float = 8.0
    closing: float = 15.0
    waiting: float = 30.0
    back_out: float = 5.0
    clear: float = 1.0
    clear_after_loss: float = 3.0
    close_pause: float = 5.0
    close_tries: int = 3
    clip_before: float = 5.0
    clip_after: float = 5.0
    two_way: bool = False
    vend: Vend = Vend.MOMENTARY
    fire_input: bool = False
    local_input: bool = False
    far_readers: frozenset[int] = frozenset()
    hold_tries: int = 3
    held_open: float = 60.0
    forced: float = 4.0
    vehicle_stuck: float = 60.0
    input_stuck: float = 300.0
    leaving: float = 10.0
    doubted: float = 60.0
    late_opening: float = 60.0
    card_early: float = 1.0
    pin: bool = False
    pin_length: int = 4
    pin_patience: float = 10.0
    second_within: float = 30.0
    plate_settle: float = 0.75
    plate_sure: float = 0.95
    plate_least: float = 0.5
    plate_early: float = 3.0

    @property
    def travel(self) -> float:
        """The longest time that the gate needs from one end to the other."""
        return max(self.opening, self.closing)

    def direction_of(self, side: Side) -> str:
        """Which way a vehicle from this side goes: "entry" or "exit"."""
        if not self.two_way:
            return self.direction
        return "entry" if side is Side.NEAR else "exit"
