"""Rules about places: the card's zone, the holder's whereabouts, and the area's limit."""

from __future__ import annotations

from gateway.domain.access.case import UNASKED, Case, Verdict, or_granted
from gateway.domain.access.reasons import Reason
from gateway.domain.presence import OUTSIDE, AntiPassback, Apart

_APART = "the other gateways cannot be asked"


def zone(case: Case) -> Verdict:
    """Check that the card is for this lane, or for every lane."""
    card, rules = case.card, case.rules
    if not card.zones or not rules.zones:
        return Verdict("any")
    if rules.lane_id in card.zones or not rules.zones.isdisjoint(card.zones):
        return Verdict("allowed")
    return or_granted(case, Verdict(f"only {', '.join(card.zones)}", Reason.WRONG_ZONE))


def first_person(case: Case) -> Verdict:
    """Check that a person who may open the area has entered today, if the area requires that."""
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or not area.first_person:
        return Verdict("not asked for")
    if case.card.first_person:
        return Verdict("may open")
    opened, calendar = case.presence.opened_at(area.area_id), case.rules.calendar
    if not case.asks_time:
        return UNASKED
    if opened is not None and calendar.local(opened).date() == calendar.local(case.now).date():
        return Verdict("opened today")
    return Verdict(f"{area.area_id} is not opened", Reason.FIRST_PERSON_AWAITED)


def shared_area(case: Case) -> Verdict | None:
    """Check the rule of a shared area while the other gateways cannot be asked; None if the way touches none.

    The rule is for vehicles that enter. Whoever is inside may leave.
    """
    entered, left = (case.rules.areas.get(area_id) for area_id in (case.rules.way.enters, case.rules.way.leaves))
    if entered is not None and entered.shared:
        if not case.conditions.apart:
            return Verdict("the other gateways can be asked")
        match entered.apart:
            case Apart.ALLOW:
                return Verdict(f"{_APART}: all are let in")
            case Apart.DENY:
                return Verdict(f"{_APART}: nobody is let in", Reason.AREA_APART)
            case Apart.LOCAL:
                return Verdict(f"{_APART}: local knowledge alone")
    if left is not None and left.shared:
        seen = f"{_APART}: whoever is inside may leave" if case.conditions.apart else "the other gateways can be asked"
        return Verdict(seen)
    return None


def anti_passback(case: Case) -> Verdict:
    """Check anti-passback. A holder whose place is unknown may pass once: the first time, or after a reset."""
    way, holder = case.rules.way, case.rules.holder(case.card)
    twin = next((one for one in case.shown.coming if one.holder == holder and one.way.enters == way.enters), None)
    if twin is not None and way.enters != OUTSIDE:
        return _passed_back(case, way.enters, f"on its way in at {twin.lane_id}")
    seen = case.presence.whereabouts(holder)
    if not way or seen is None:
        return Verdict("not known where" if way else "leads nowhere else")
    where = f"last seen {f'entering {seen.area_id}' if seen.area_id else 'leaving'} at {case.moment(seen.since)}"
    if way.enters != OUTSIDE and seen.area_id == way.enters:
        return _passed_back(case, way.enters, where, since=seen.since)
    if way.leaves not in (OUTSIDE, seen.area_id):
        return _passed_back(case, way.leaves, where, since=seen.since)
    return Verdict("in order")


def _passed_back(case: Case, area_id: str, where: str, *, since: int | None = None) -> Verdict:
    area = case.rules.areas.get(area_id)
    since = case.now if since is None else since
    if _is_not_asked(case, area_id):
        return Verdict(f"not asked: {where}, as far as is known here")
    match area.anti_passback if area is not None else AntiPassback.OFF:
        case AntiPassback.HARD:
            return Verdict(where, Reason.ANTI_PASSBACK)
        case AntiPassback.SOFT:
            return Verdict(where, notice=Reason.ANTI_PASSBACK)
        case AntiPassback.TIMED if area is not None and case.asks_time and case.now - since < area.minutes * 60_000_000:
            return Verdict(f"{where}, within {area.minutes:g} minutes", Reason.ANTI_PASSBACK)
        case _:
            return Verdict(where)


def room(case: Case) -> Verdict:
    """Check the area's limit. Vehicles on their way in count as inside, lest two lanes admit one too many."""
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or area.limit is None:
        return Verdict("no limit")
    if _is_not_asked(case, area.area_id):
        return Verdict("not asked")
    inside = case.presence.count(area.area_id)
    coming = sum(one.way.enters == area.area_id for one in case.shown.coming)
    seen = f"{inside} of {area.limit}" + (f", {coming} on their way in" if coming else "")
    return Verdict(seen, Reason.AREA_FULL if inside + coming >= area.limit else None)


def _is_not_asked(case: Case, area_id: str) -> bool:
    """Return whether presence does not count now: only the other gateways know it, and the area's rule is not LOCAL."""
    area = case.rules.areas.get(area_id)
    return area is not None and area.shared and case.conditions.apart and area.apart is not Apart.LOCAL
