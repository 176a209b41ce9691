"""Rules about time: the clock's certainty, the card's dates, and the hours."""

from __future__ import annotations

from gateway.domain.access.case import UNASKED, Case, Verdict, or_granted
from gateway.domain.access.reasons import Reason
from gateway.domain.access.rules import Stance
from gateway.domain.presence import AntiPassback


def clock(case: Case) -> Verdict:
    """Check that the clock is trusted, that the card does not depend on it, or that the lane's stance is not SECURE."""
    if case.conditions.clock_trusted:
        return Verdict("trusted")
    card, rules = case.card, case.rules
    entered = rules.areas.get(rules.way.enters)
    by_time = (
        card.valid_from is not None
        or card.valid_until is not None
        or (card.schedules and rules.schedules)
        or rules.schedule is not None
        or (entered is not None and (entered.first_person or entered.anti_passback is AntiPassback.TIMED))
    )
    secure = rules.ladder.clock is Stance.SECURE
    return Verdict("not trusted", Reason.CLOCK_UNTRUSTED if secure and by_time else None)


def validity(case: Case) -> Verdict:
    """Check that the card is within its dates."""
    card, now = case.card, case.now
    if not case.asks_time:
        return UNASKED
    if card.valid_from is not None and now < card.valid_from:
        return or_granted(case, Verdict(f"from {case.moment(card.valid_from)}", Reason.NOT_YET_VALID))
    if card.valid_until is not None and case.at_least >= card.valid_until:
        return or_granted(case, Verdict(f"until {case.moment(card.valid_until)}", Reason.EXPIRED))
    return Verdict("within")


def lane_hours(case: Case) -> Verdict:
    """Check that the lane itself is open."""
    schedule = case.rules.schedule
    if schedule is None:
        return Verdict("always")
    if not case.asks_time:
        return UNASKED
    if case.rules.calendar.is_open(schedule, case.now):
        return Verdict(f"within {schedule.name}")
    return Verdict(f"outside {schedule.name} at {case.moment(case.now)}", Reason.LANE_CLOSED)


def schedule(case: Case) -> Verdict:
    """Check that one of the card's schedules is open. An unknown schedule opens nothing."""
    card, rules = case.card, case.rules
    if not card.schedules or not rules.schedules:
        return Verdict("any")
    known = [rules.schedules[name] for name in card.schedules if name in rules.schedules]
    if not known:
        return or_granted(case, Verdict(", ".join(card.schedules), Reason.UNKNOWN_SCHEDULE))
    if not case.asks_time:
        return UNASKED
    within = next((schedule for schedule in known if rules.calendar.is_open(schedule, case.now)), None)
    if within is not None:
        return Verdict(f"within {within.name}")
    names = ", ".join(schedule.name for schedule in known)
    return or_granted(case, Verdict(f"outside {names} at {case.moment(case.now)}", Reason.OUTSIDE_SCHEDULE))
