"""Input and result types of the decision's rules, and grants in place of a card's own zones, dates and schedules."""

from __future__ import annotations

from typing import NamedTuple

from gateway.domain.access.reasons import Reason
from gateway.domain.access.rules import AccessRules, Conditions, Shown, Stance
from gateway.domain.credentials import Card, Credential
from gateway.domain.grants import Grant
from gateway.domain.presence import Presence


class Case(NamedTuple):
    """A card, and everything that the rules need to judge it. Times are wall micros UTC.

    Attributes:
        now: the moment of the decision, never earlier than a moment that is known to be past.
        at_least: the earliest moment that it can be while the clock is not trusted. A validity counts as over only if
            it ended by then.
        grants: the grants of the card's user at this lane, the longest first.
    """

    card: Card
    credential: Credential
    now: int
    at_least: int
    rules: AccessRules
    presence: Presence
    conditions: Conditions
    shown: Shown
    grants: tuple[Grant, ...] = ()

    @property
    def asks_time(self) -> bool:
        """True if rules about time are applied: the clock is trusted, or the lane's stance does not ignore time."""
        return self.conditions.clock_trusted or self.rules.ladder.clock is not Stance.OPEN

    def moment(self, micros: int) -> str:
        """Write an instant in the site's zone, for people."""
        return self.rules.calendar.local(micros).strftime("%Y-%m-%d %H:%M")


class Verdict(NamedTuple):
    """Result of one rule: its finding, the reason if it failed, and a notice for people if it passed.

    `grant`: the number of the grant without which it would have failed.
    """

    seen: str
    reason: Reason | None = None
    notice: Reason | None = None
    grant: int | None = None


UNASKED = Verdict("not asked: the time is not certain")


def or_granted(case: Case, own: Verdict) -> Verdict:
    """Return the card's own verdict, or if that failed, a pass by a valid grant of its user.

    The finding names the grant, also one that no longer counts.
    """
    if own.reason is None or not case.grants:
        return own
    valid = next((grant for grant in case.grants if not _why_not(case, grant)), None)
    if valid is not None:
        return Verdict(f"{own.seen}, but {valid.shown} lets it pass", grant=valid.number)
    longest = case.grants[0]
    return Verdict(f"{own.seen}; {longest.shown} {_why_not(case, longest)}", own.reason)


def _why_not(case: Case, grant: Grant) -> str:
    """Return why a grant does not count now, "" when it does. An untrusted clock counts as for a card's dates."""
    if grant.valid_until is None or not case.asks_time:
        return ""
    if not case.conditions.clock_trusted and case.rules.ladder.clock is Stance.SECURE:
        return "cannot be judged: the time is not certain"
    return f"ended {case.moment(grant.valid_until)}" if case.at_least >= grant.valid_until else ""
