"""How central is, as the last exchanges showed it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.central.client.clock import ClockOffset
from gateway.runtime.clock import Stamp


@dataclass(frozen=True, slots=True)
class CentralState:
    """How central is, for the page.

    Attributes:
        reachable: whether the last exchange reached it; None before the first.
        told: the same as people are told it: of a line that flickers, the loss is told once it lasts.
        since: when `reachable` became so.
        last_error: what the last exchange failed with; "" after a success.
        signed_in_at: when the last sign-in succeeded.
        not_permitted: operations that the gateway's account may not use, each with central's words.
        clock_offset: by how much central's clock is ahead; None while that is unknown.
    """

    reachable: bool | None = None
    told: bool | None = None
    since: Stamp | None = None
    last_error: str = ""
    signed_in_at: Stamp | None = None
    not_permitted: tuple[tuple[str, str], ...] = ()
    clock_offset: ClockOffset | None = None
