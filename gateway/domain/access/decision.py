"""The decision: one pure function from a reading and the cards that it may mean to granted or denied, with a trace.

Rules are asked in the order of `_RULES`; the first that fails decides. Nothing is remembered here: anti-passback and
counts change with the passage, not with the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gateway.domain.access.reasons import Decision, Reason, RuleResult
from gateway.domain.access.rules import AccessRules, Conditions, Shown, Stance
from gateway.domain.credentials import Card, CardStatus, Credential
from gateway.domain.plates import PlateMatch, nearest
from gateway.domain.presence import OUTSIDE, AntiPassback, Presence, Whereabouts

_STATUS_REASONS: Final = {
    CardStatus.SUSPENDED: Reason.SUSPENDED,
    CardStatus.LOST: Reason.LOST,
    CardStatus.BLOCKED: Reason.BLOCKED,
    CardStatus.EXPIRED: Reason.EXPIRED,
}
_ANY_LANE: Final = AccessRules()
_NOBODY: Final = Presence()
_ALL_WELL: Final = Conditions()
_NOTHING: Final = Shown()


class _Case(NamedTuple):
    """A card that was found, and all that its rules look at. `now` is never before what is known to be past."""

    card: Card
    credential: Credential
    now: int
    rules: AccessRules
    presence: Presence
    conditions: Conditions
    shown: Shown

    @property
    def asks_time(self) -> bool:
        """Whether rules of time are to be judged."""
        return self.conditions.clock_trusted or self.rules.ladder.clock is not Stance.OPEN


class _Verdict(NamedTuple):
    """What a rule saw; the reason when it failed; what a person should hear of when it did not."""

    seen: str
    reason: Reason | None = None
    notice: Reason | None = None


_UNASKED: Final = _Verdict("not asked: the time is not certain")


def decide(
    credential: Credential,
    cards: Sequence[Card],
    *,
    now: int,
    rules: AccessRules = _ANY_LANE,
    presence: Presence = _NOBODY,
    conditions: Conditions = _ALL_WELL,
    shown: Shown = _NOTHING,
) -> Decision:
    """Decide on one reading.

    Args:
        credential: what was read.
        cards: every card that answers to one of the reading's aliases.
        now: wall micros UTC.
        rules: of the lane, for the direction of this vehicle.
        presence: who is where; looked at, never changed.
        conditions: what can be relied on.
        shown: what else is known of this vehicle.

    A reading that means more than one card is refused: the gateway never picks.
    """
    trace: list[RuleResult] = []
    near = nearest(credential.plate, shown.near, now) if not cards and rules.near_plates and credential.plate else None
    card, verdict = _known(credential, cards, near)
    if verdict.reason is Reason.UNKNOWN_CREDENTIAL and _lets_unknown_pass(rules, conditions, shown, now):
        verdict = _Verdict(f"{verdict.seen}: not known, but the card list is too old to tell")
    trace.append(RuleResult("known", passed=verdict.reason is None, seen=verdict.seen))
    if card is None:
        granted = verdict.reason is None
        return Decision(granted, verdict.reason or Reason.FAIL_OPEN, None, tuple(trace))
    earliest = conditions.listed_at if conditions.listed_at and not conditions.clock_trusted else now
    case = _Case(card, credential, max(now, earliest), rules, presence, conditions, shown)
    notices: list[Reason] = []
    for name, rule in _RULES:
        verdict = rule(case)
        trace.append(RuleResult(name, verdict.reason is None, verdict.seen))
        if verdict.reason is not None:
            return Decision(granted=False, reason=verdict.reason, card=card, trace=tuple(trace), notices=tuple(notices))
        if verdict.notice is not None:
            notices.append(verdict.notice)
    reason = Reason.NEAR_PLATE if near is not None else Reason.VALID_CARD
    return Decision(granted=True, reason=reason, card=card, trace=tuple(trace), notices=tuple(notices))


def store_unavailable(rules: AccessRules = _ANY_LANE) -> Decision:
    """The decision when the card list cannot be read in time: refused, unless the lane's ladder says open."""
    granted = rules.ladder.no_cards is Stance.OPEN
    trace = (RuleResult("card list", passed=granted, seen="not readable"),)
    return Decision(granted, Reason.FAIL_OPEN if granted else Reason.STORE_UNAVAILABLE, None, trace)


def _is_stale(rules: AccessRules, conditions: Conditions, now: int) -> bool:
    if rules.stale_after is None or conditions.listed_at is None:
        return False
    return now - conditions.listed_at > rules.stale_after


def _lets_unknown_pass(rules: AccessRules, conditions: Conditions, shown: Shown, now: int) -> bool:
    if rules.ladder.stale_cards is not Stance.OPEN or not _is_stale(rules, conditions, now):
        return False
    return all(card.status is not CardStatus.BLOCKED for card in shown.plates)


def _known(credential: Credential, cards: Sequence[Card], near: PlateMatch | None) -> tuple[Card | None, _Verdict]:
    if len({card.card_id for card in cards}) > 1:
        return None, _Verdict(f"{len(cards)} cards", Reason.AMBIGUOUS_CREDENTIAL)
    if cards:
        return cards[0], _Verdict(f"card {cards[0].card_id}")
    if near is not None and near.card is not None:
        return near.card, _Verdict(f"card {near.card.card_id}, {near.seen}")
    seen = f"{credential.shown()}, {near.seen}" if near is not None else credential.shown()
    return None, _Verdict(seen, Reason.UNKNOWN_CREDENTIAL)


def _card_list(case: _Case) -> _Verdict:
    if not _is_stale(case.rules, case.conditions, case.now):
        return _Verdict("up to date")
    hours = (case.now - (case.conditions.listed_at or 0)) / 3_600_000_000
    seen = f"{hours:.0f} hours old"
    return _Verdict(seen, Reason.CARDS_STALE if case.rules.ladder.stale_cards is Stance.SECURE else None)


def _records(case: _Case) -> _Verdict:
    if case.conditions.recording:
        return _Verdict("recorded")
    return _Verdict("waiting", Reason.NOTHING_RECORDED if case.rules.ladder.records is Stance.SECURE else None)


def _status(case: _Case) -> _Verdict:
    status = case.card.status
    if status is CardStatus.ACTIVE:
        return _Verdict(status)
    plate = status is CardStatus.BLOCKED and case.credential.plate
    return _Verdict(status, Reason.BLOCKED_PLATE if plate else _STATUS_REASONS[status])


def _vehicle(case: _Case) -> _Verdict:
    blocked = next((card for card in case.shown.plates if card.status is CardStatus.BLOCKED), None)
    if blocked is not None:
        return _Verdict(f"plate of card {blocked.card_id}", Reason.BLOCKED_PLATE)
    return _Verdict("not blocked")


def _clock(case: _Case) -> _Verdict:
    if case.conditions.clock_trusted:
        return _Verdict("trusted")
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
    return _Verdict("not trusted", Reason.CLOCK_UNTRUSTED if secure and by_time else None)


def _validity(case: _Case) -> _Verdict:
    card, now = case.card, case.now
    if not case.asks_time:
        return _UNASKED
    if card.valid_from is not None and now < card.valid_from:
        return _Verdict(f"from {_moment(case, card.valid_from)}", Reason.NOT_YET_VALID)
    if card.valid_until is not None and now >= card.valid_until:
        return _Verdict(f"until {_moment(case, card.valid_until)}", Reason.EXPIRED)
    return _Verdict("within")


def _zone(case: _Case) -> _Verdict:
    card, rules = case.card, case.rules
    if not card.zones or not rules.zones:
        return _Verdict("any")
    if rules.lane_id in card.zones or not rules.zones.isdisjoint(card.zones):
        return _Verdict("allowed")
    return _Verdict(f"only {', '.join(card.zones)}", Reason.WRONG_ZONE)


def _lane_hours(case: _Case) -> _Verdict:
    schedule = case.rules.schedule
    if schedule is None:
        return _Verdict("always")
    if not case.asks_time:
        return _UNASKED
    if case.rules.calendar.is_open(schedule, case.now):
        return _Verdict(f"within {schedule.name}")
    return _Verdict(f"outside {schedule.name} at {_moment(case, case.now)}", Reason.LANE_CLOSED)


def _schedule(case: _Case) -> _Verdict:
    """Open while one of the card's schedules is. One that the site does not know opens nothing."""
    card, rules = case.card, case.rules
    if not card.schedules or not rules.schedules:
        return _Verdict("any")
    known = [rules.schedules[name] for name in card.schedules if name in rules.schedules]
    if not known:
        return _Verdict(", ".join(card.schedules), Reason.UNKNOWN_SCHEDULE)
    if not case.asks_time:
        return _UNASKED
    within = next((schedule for schedule in known if rules.calendar.is_open(schedule, case.now)), None)
    if within is not None:
        return _Verdict(f"within {within.name}")
    names = ", ".join(schedule.name for schedule in known)
    return _Verdict(f"outside {names} at {_moment(case, case.now)}", Reason.OUTSIDE_SCHEDULE)


def _first_person(case: _Case) -> _Verdict:
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or not area.first_person:
        return _Verdict("not asked for")
    if case.card.first_person:
        return _Verdict("may open")
    opened, calendar = case.presence.opened_at(area.area_id), case.rules.calendar
    if not case.asks_time:
        return _UNASKED
    if opened is not None and calendar.local(opened).date() == calendar.local(case.now).date():
        return _Verdict("opened today")
    return _Verdict(f"{area.area_id} is not opened", Reason.FIRST_PERSON_AWAITED)


def _anti_passback(case: _Case) -> _Verdict:
    """A holder whose whereabouts are not known may pass once: it is their first time, or they were forgiven."""
    way = case.rules.way
    seen = case.presence.whereabouts(case.rules.holder(case.card))
    if not way or seen is None:
        return _Verdict("not known where" if way else "leads nowhere else")
    if way.enters != OUTSIDE and seen.area_id == way.enters:
        return _passed_back(case, way.enters, seen)
    if way.leaves not in (OUTSIDE, seen.area_id):
        return _passed_back(case, way.leaves, seen)
    return _Verdict("in order")


def _passed_back(case: _Case, area_id: str, last: Whereabouts) -> _Verdict:
    area = case.rules.areas.get(area_id)
    where = f"last seen {f'entering {last.area_id}' if last.area_id else 'leaving'} at {_moment(case, last.since)}"
    match area.anti_passback if area is not None else AntiPassback.OFF:
        case AntiPassback.HARD:
            return _Verdict(where, Reason.ANTI_PASSBACK)
        case AntiPassback.SOFT:
            return _Verdict(where, notice=Reason.ANTI_PASSBACK)
        case AntiPassback.TIMED if (
            area is not None and case.asks_time and case.now - last.since < area.minutes * 60_000_000
        ):
            return _Verdict(f"{where}, within {area.minutes:g} minutes", Reason.ANTI_PASSBACK)
        case _:
            return _Verdict(where)


def _room(case: _Case) -> _Verdict:
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or area.limit is None:
        return _Verdict("no limit")
    count = case.presence.count(area.area_id)
    return _Verdict(f"{count} of {area.limit}", Reason.AREA_FULL if count >= area.limit else None)


def _second(case: _Case) -> _Verdict:
    if not case.rules.two_credentials:
        return _Verdict("not asked for")
    first = case.shown.first
    if first is None or first.card_id == case.card.card_id:
        return _Verdict(f"only card {case.card.card_id}", Reason.SECOND_CREDENTIAL_AWAITED)
    return _Verdict(f"after card {first.card_id}")


def _duress(case: _Case) -> _Verdict:
    """Never refuses: whoever is forced must not be seen to call for help."""
    signalled = case.card.duress or (case.shown.first is not None and case.shown.first.duress)
    return _Verdict("noted", notice=Reason.DURESS) if signalled else _Verdict("none")


def _moment(case: _Case, micros: int) -> str:
    return case.rules.calendar.local(micros).strftime("%Y-%m-%d %H:%M")


_RULES: Final[tuple[tuple[str, Callable[[_Case], _Verdict]], ...]] = (
    ("duress", _duress),
    ("card list", _card_list),
    ("records", _records),
    ("status", _status),
    ("vehicle", _vehicle),
    ("clock", _clock),
    ("validity", _validity),
    ("zone", _zone),
    ("lane hours", _lane_hours),
    ("schedule", _schedule),
    ("first person", _first_person),
    ("anti-passback", _anti_passback),
    ("room", _room),
    ("second credential", _second),
)
