"""Roles of a lane's inputs. All that a role means for the lane, the checks and the installers stands in `ROLES`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from gateway.domain.events import EventKind


class Role(StrEnum):
    """The role of an input in a lane. `FAR` is the arming loop on the other side of a two-way lane."""

    ARMING = "arming"
    FAR = "far"
    CLOSING = "closing"
    SAFETY = "safety"
    FIRE = "fire"
    KEY_SWITCH = "key_switch"


@dataclass(frozen=True, slots=True)
class TroubleWhileOn:
    """The trouble that lasts as long as an input is on."""

    kind: EventKind
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleSpec:
    """The meaning of a role.

    Attributes:
        name: its name in a sentence; "" where each input is named after its point.
        kind: its kind, where a sentence asks for a point of a device.
        needed: a lane needs one.
        many: a lane may have several of them.
        waits: a vehicle that waits before the gate holds it.
        obstructs: a vehicle under the gate holds it: it must be free for a while before a close, and opens a closing
            gate again.
        forbids_close: no close is sent unless it is known to be off.
        forbids_open: no order opens the gate unless it is known to be off.
        opens: it opens the gate and keeps it open.
        moves_gate: while it is on, somebody at the gate may move it without a command of the gateway.
        trouble: what is told while it is on, None for nothing.
    """

    name: str
    kind: str
    needed: bool = False
    many: bool = False
    waits: bool = False
    obstructs: bool = False
    forbids_close: bool = False
    forbids_open: bool = False
    opens: bool = False
    moves_gate: bool = False
    trouble: TroubleWhileOn | None = None

    @property
    def held_by_vehicles(self) -> bool:
        """True if a vehicle can hold it, so that it is stuck when it stays on for too long."""
        return self.waits or self.obstructs


ROLES: Mapping[Role, RoleSpec] = MappingProxyType(
    {
        Role.ARMING: RoleSpec(name="the arming loop", kind="an arming loop", needed=True, waits=True),
        Role.FAR: RoleSpec(name="the far arming loop", kind="an arming loop", waits=True),
        Role.CLOSING: RoleSpec(
            name="the closing loop",
            kind="a closing loop",
            needed=True,
            obstructs=True,
            forbids_close=True,
        ),
        Role.SAFETY: RoleSpec(name="", kind="a safety point", many=True, obstructs=True, forbids_close=True),
        Role.FIRE: RoleSpec(
            name="the fire input",
            kind="a fire input",
            forbids_close=True,
            opens=True,
            trouble=TroubleWhileOn(EventKind.FIRE_INPUT, "the fire input is active, so the gate must be open"),
        ),
        Role.KEY_SWITCH: RoleSpec(
            name="the key switch",
            kind="a key switch",
            forbids_close=True,
            forbids_open=True,
            moves_gate=True,
            trouble=TroubleWhileOn(EventKind.KEY_SWITCH_ON, "the key switch controls the gate"),
        ),
    }
)
"""All roles, in the order in which their inputs are shown and tried."""
