"""The state of the link between the site and central."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.problems import ProblemKind
from gateway.domain.wall_time import WallMicros
from gateway.texts import Words


@dataclass(frozen=True, slots=True)
class CentralNotice:
    """Something that a technician should know about central: its kind, and words for people.

    `subject` tells notices of one kind apart, "" if there can only be one.
    """

    kind: ProblemKind
    text: Words
    subject: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CentralStatus:
    """State of the link to central. Times are wall micros UTC.

    Attributes:
        reachable: whether the last exchange reached central; None before the first.
        since: when `reachable` took its value; before the first exchange, when the link was made: at the
            gateway's start, or when [central] of the site file changed.
        error: why the last exchange failed; "" after a success.
        last_sign_in: time of the last successful sign-in, None for never.
        pulled_at: when the last pull ended, None for never.
        pulled: what the last pull fetched, in words.
        progress: how far the running pull or comparison is; between pulls, the lists still to fetch anew, or "".
        refreshing: whether a full fetch runs or is due.
        reconciling: whether a comparison of sent records runs or is due.
        reconciled: result of the last comparison, in words.
        incomplete: whether the last pull lacks a list, or rejected one.
        notices: what a technician should know.
        clock_ahead: by how many seconds at most central's clock is ahead of this machine's; None while central does not
            answer, since either clock may be set meanwhile.
    """

    reachable: bool | None
    since: WallMicros
    error: str = ""
    last_sign_in: WallMicros | None = None
    pulled_at: WallMicros | None = None
    pulled: str = ""
    progress: str = ""
    refreshing: bool = False
    reconciling: bool = False
    reconciled: str = ""
    incomplete: bool = False
    notices: tuple[CentralNotice, ...] = ()
    clock_ahead: float | None = None
