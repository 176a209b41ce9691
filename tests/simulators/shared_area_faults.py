"""Faults planted into shared areas, which the checker of `shared_area_rounds` must find."""

from __future__ import annotations

from collections.abc import Callable

from gateway.lanes.claims import ClaimOutcome, OwnClaim
from gateway.lanes.shared_areas import SharedAreas


def _no_revision() -> None:
    """A claim is written against whatever entry there is by then, and stands."""
    ends_as = OwnClaim.ends_as

    def ended(self: OwnClaim, outcome: ClaimOutcome) -> None:
        if outcome is not ClaimOutcome.OVERTAKEN:
            ends_as(self, outcome)

    OwnClaim.ends_as = ended


def _no_limit() -> None:
    """The last places are given to everybody who claims one."""
    OwnClaim.judged = lambda _own, _records: ClaimOutcome.CLAIMED


def _no_wait() -> None:
    """A gate opens before its claim has an answer."""

    async def outcome(_self: SharedAreas, own: OwnClaim, *, until: float) -> ClaimOutcome:
        own.decides = False
        own.ends_as(ClaimOutcome.CLAIMED)
        return ClaimOutcome.CLAIMED

    SharedAreas.outcome = outcome


def _no_giving_back() -> None:
    """A claim that nobody used stands for ever."""
    SharedAreas.release = lambda _self, _claim_id: None


def _forgotten() -> None:
    """A passage is not told to the others if they cannot be asked."""
    moved = SharedAreas.moved

    def taken(self: SharedAreas, movements: object) -> None:
        if not self.is_apart:
            moved(self, movements)

    SharedAreas.moved = taken


WRONG_RULE = "wrong-rule"
"""The area that denies while apart decides by local knowledge instead: set in the site file of the rounds."""
PLANTS: dict[str, Callable[[], None]] = {
    "no-revision": _no_revision,
    "no-limit": _no_limit,
    "no-wait": _no_wait,
    "no-giving-back": _no_giving_back,
    "forgotten": _forgotten,
    WRONG_RULE: lambda: None,
}


def plant(name: str) -> None:
    """Plant a fault by its name, "" for none."""
    if name:
        PLANTS[name]()
