"""Grants in place of a card's own zones, dates and schedules."""

from __future__ import annotations

from gateway.domain.access.case import Case, Verdict
from gateway.domain.access.rules import Stance
from gateway.domain.grants import Grant


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
