"""How the site and central stand, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.sync.central import CentralClient


@dataclass(frozen=True, slots=True)
class Standing:
    """How the two stand. Times are wall micros UTC.

    Attributes:
        reachable: whether the last exchange reached central; None before the first.
        since: since when that is so; the gateway's start before the first exchange.
        error: what the last exchange failed with; "" after a success.
        last_sign_in: when the last sign-in succeeded, None for never.
    """

    reachable: bool | None
    since: int
    error: str
    last_sign_in: int | None


class CentralStanding:
    """The client's state, read without waiting."""

    def __init__(self, *, client: CentralClient, started_at: int) -> None:
        self._client = client
        self._started_at = started_at

    def snapshot(self) -> Standing:
        """How the two stand now."""
        state = self._client.state
        return Standing(
            reachable=state.reachable,
            since=state.since.micros if state.since else self._started_at,
            error=state.last_error,
            last_sign_in=state.signed_in_at.micros if state.signed_in_at else None,
        )
