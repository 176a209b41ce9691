"""Access decision: a pure function from a reading and its candidate cards to granted or denied, with a trace.

Rules are applied in the order of `_RULES`; the first that fails decides. Nothing is remembered here: anti-passback and
counts change with the passage, not with the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Final, NamedTuple

from gateway.domain.access.reasons import Decision, Reason, RuleResult
from gateway.domain.access.rules import AccessRules, Conditions, Shown, Stance
from gateway.domain.credentials import Card, CardStatus, Credential
from gateway.domain.grants import Grant, LaneGrants, listed_id
from gateway.domain.plates import PlateMatch, nearest
from gateway.domain.presence import OUTSIDE, AntiPassback, Apart, Presence

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
_NO_GRANTS: Final = LaneGrants()

_APART = "the other gateways cannot be asked"


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


class RuleVerdict(NamedTuple):
    """Result of one rule: its finding, the reason if it failed, and a notice for people if it passed.

    `grant`: the number of the grant without which it would have failed.
    """

    seen: str
    reason: Reason | None = None
    notice: Reason | None = None
    grant: int | None = None


UNASKED = RuleVerdict("not asked: the time is not certain")


def or_granted(case: Case, own: RuleVerdict) -> RuleVerdict:
    """Return the card's own verdict, or if that failed, a pass by a valid grant of its user.

    The finding names the grant, also one that no longer counts.
    """
    if own.reason is None or not case.grants:
        return own
    valid = next((grant for grant in case.grants if not _why_not(case, grant)), None)
    if valid is not None:
        return RuleVerdict(f"{own.seen}, but {valid.shown} lets it pass", grant=valid.number)
    longest = case.grants[0]
    return RuleVerdict(f"{own.seen}; {longest.shown} {_why_not(case, longest)}", own.reason)


def _why_not(case: Case, grant: Grant) -> str:
    """Return why a grant does not count now, "" when it does. An untrusted clock counts as for a card's dates."""
    if grant.valid_until is None or not case.asks_time:
        return ""
    if not case.conditions.clock_trusted and case.rules.ladder.clock is Stance.SECURE:
        return "cannot be judged: the time is not certain"
    return f"ended {case.moment(grant.valid_until)}" if case.at_least >= grant.valid_until else ""


def zone(case: Case) -> RuleVerdict:
    """Check that the card is for this lane, or for every lane."""
    card, rules = case.card, case.rules
    if not card.zones or not rules.zones:
        return RuleVerdict("any")
    if rules.lane_id in card.zones or not rules.zones.isdisjoint(card.zones):
        return RuleVerdict("allowed")
    return or_granted(case, RuleVerdict(f"only {', '.join(card.zones)}", Reason.WRONG_ZONE))


def first_person(case: Case) -> RuleVerdict:
    """Check that a person who may open the area has entered today, if the area requires that."""
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or not area.first_person:
        return RuleVerdict("not asked for")
    if case.card.first_person:
        return RuleVerdict("may open")
    opened, calendar = case.presence.opened_at(area.area_id), case.rules.calendar
    if not case.asks_time:
        return UNASKED
    if opened is not None and calendar.local(opened).date() == calendar.local(case.now).date():
        return RuleVerdict("opened today")
    return RuleVerdict(f"{area.area_id} is not opened", Reason.FIRST_PERSON_AWAITED)


def shared_area(case: Case) -> RuleVerdict | None:
    """Check the rule of a shared area while the other gateways cannot be asked; None if the way touches none.

    The rule is for vehicles that enter. Whoever is inside may leave.
    """
    entered, left = (case.rules.areas.get(area_id) for area_id in (case.rules.way.enters, case.rules.way.leaves))
    if entered is not None and entered.shared:
        if not case.conditions.apart:
            return RuleVerdict("the other gateways can be asked")
        match entered.apart:
            case Apart.ALLOW:
                return RuleVerdict(f"{_APART}: all are let in")
            case Apart.DENY:
                return RuleVerdict(f"{_APART}: nobody is let in", Reason.AREA_APART)
            case Apart.LOCAL:
                return RuleVerdict(f"{_APART}: local knowledge alone")
    if left is not None and left.shared:
        seen = f"{_APART}: whoever is inside may leave" if case.conditions.apart else "the other gateways can be asked"
        return RuleVerdict(seen)
    return None


def anti_passback(case: Case) -> RuleVerdict:
    """Check anti-passback. A holder whose place is unknown may pass once: the first time, or after a reset."""
    way, holder = case.rules.way, case.rules.holder(case.card)
    twin = next((one for one in case.shown.coming if one.holder == holder and one.way.enters == way.enters), None)
    if twin is not None and way.enters != OUTSIDE:
        return _passed_back(case, way.enters, f"on its way in at {twin.lane_id}")
    seen = case.presence.whereabouts(holder)
    if not way or seen is None:
        return RuleVerdict("not known where" if way else "leads nowhere else")
    where = f"last seen {f'entering {seen.area_id}' if seen.area_id else 'leaving'} at {case.moment(seen.since)}"
    if way.enters != OUTSIDE and seen.area_id == way.enters:
        return _passed_back(case, way.enters, where, since=seen.since)
    if way.leaves not in (OUTSIDE, seen.area_id):
        return _passed_back(case, way.leaves, where, since=seen.since)
    return RuleVerdict("in order")


def _passed_back(case: Case, area_id: str, where: str, *, since: int | None = None) -> RuleVerdict:
    area = case.rules.areas.get(area_id)
    since = case.now if since is None else since
    if _is_not_asked(case, area_id):
        return RuleVerdict(f"not asked: {where}, as far as is known here")
    match area.anti_passback if area is not None else AntiPassback.OFF:
        case AntiPassback.HARD:
            return RuleVerdict(where, Reason.ANTI_PASSBACK)
        case AntiPassback.SOFT:
            return RuleVerdict(where, notice=Reason.ANTI_PASSBACK)
        case AntiPassback.TIMED if area is not None and case.asks_time and case.now - since < area.minutes * 60_000_000:
            return RuleVerdict(f"{where}, within {area.minutes:g} minutes", Reason.ANTI_PASSBACK)
        case _:
            return RuleVerdict(where)


def room(case: Case) -> RuleVerdict:
    """Check the area's limit. Vehicles on their way in count as inside, lest two lanes admit one too many."""
    area = case.rules.areas.get(case.rules.way.enters)
    if area is None or area.limit is None:
        return RuleVerdict("no limit")
    if _is_not_asked(case, area.area_id):
        return RuleVerdict("not asked")
    inside = case.presence.count(area.area_id)
    coming = sum(one.way.enters == area.area_id for one in case.shown.coming)
    seen = f"{inside} of {area.limit}" + (f", {coming} on their way in" if coming else "")
    return RuleVerdict(seen, Reason.AREA_FULL if inside + coming >= area.limit else None)


def _is_not_asked(case: Case, area_id: str) -> bool:
    """Return whether presence does not count now: only the other gateways know it, and the area's rule is not LOCAL."""
    area = case.rules.areas.get(area_id)
    return area is not None and area.shared and case.conditions.apart and area.apart is not Apart.LOCAL


def _clock(case: Case) -> RuleVerdict:
    """Check that the clock is trusted, that the card does not depend on it, or that the lane's stance is not SECURE."""
    if case.conditions.clock_trusted:
        return RuleVerdict("trusted")
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
    return RuleVerdict("not trusted", Reason.CLOCK_UNTRUSTED if secure and by_time else None)


def _validity(case: Case) -> RuleVerdict:
    """Check that the card is within its dates."""
    card, now = case.card, case.now
    if not case.asks_time:
        return UNASKED
    if card.valid_from is not None and now < card.valid_from:
        return or_granted(case, RuleVerdict(f"from {case.moment(card.valid_from)}", Reason.NOT_YET_VALID))
    if card.valid_until is not None and case.at_least >= card.valid_until:
        return or_granted(case, RuleVerdict(f"until {case.moment(card.valid_until)}", Reason.EXPIRED))
    return RuleVerdict("within")


def _lane_hours(case: Case) -> RuleVerdict:
    """Check that the lane itself is open."""
    schedule = case.rules.schedule
    if schedule is None:
        return RuleVerdict("always")
    if not case.asks_time:
        return UNASKED
    if case.rules.calendar.is_open(schedule, case.now):
        return RuleVerdict(f"within {schedule.name}")
    return RuleVerdict(f"outside {schedule.name} at {case.moment(case.now)}", Reason.LANE_CLOSED)


def _schedule(case: Case) -> RuleVerdict:
    """Check that one of the card's schedules is open. An unknown schedule opens nothing."""
    card, rules = case.card, case.rules
    if not card.schedules or not rules.schedules:
        return RuleVerdict("any")
    known = [rules.schedules[name] for name in card.schedules if name in rules.schedules]
    if not known:
        return or_granted(case, RuleVerdict(", ".join(card.schedules), Reason.UNKNOWN_SCHEDULE))
    if not case.asks_time:
        return UNASKED
    within = next((schedule for schedule in known if rules.calendar.is_open(schedule, case.now)), None)
    if within is not None:
        return RuleVerdict(f"within {within.name}")
    names = ", ".join(schedule.name for schedule in known)
    return or_granted(case, RuleVerdict(f"outside {names} at {case.moment(case.now)}", Reason.OUTSIDE_SCHEDULE))


def duress_pin(pin: str) -> str:
    """Return the PIN that signals duress (the last digit one higher); "" if the card has no PIN."""
    return pin[:-1] + str((int(pin[-1]) + 1) % 10) if pin[-1:].isdecimal() else ""


def _is_forced(case: Case) -> bool:
    """Return whether the typed PIN signals duress."""
    own = case.card.pin
    return bool(own) and case.rules.asks_pin and _same(duress_pin(own), case.shown.pin)


def _pin(case: Case) -> RuleVerdict:
    """Check the card's PIN if the lane asks for one. A plate has no PIN, so it alone opens nothing there."""
    if not case.rules.asks_pin:
        return RuleVerdict("not asked for")
    if case.credential.plate:
        return RuleVerdict("a plate has none", Reason.PIN_MISSING)
    if not case.card.pin:
        return RuleVerdict("the card has none", Reason.NO_PIN)
    if case.shown.pin_locked or not case.shown.pin:
        locked = case.shown.pin_locked
        return RuleVerdict("locked" if locked else "none typed", Reason.PIN_LOCKED if locked else Reason.PIN_MISSING)
    if _same(case.card.pin, case.shown.pin) or _is_forced(case):
        return RuleVerdict("right")
    return RuleVerdict("another", Reason.WRONG_PIN)


def _same(one: str, other: str) -> bool:
    """Compare two PINs in constant time."""
    return compare_digest(one.encode(), other.encode())


def decide(
    credential: Credential,
    cards: Sequence[Card],
    *,
    now: int,
    rules: AccessRules = _ANY_LANE,
    presence: Presence = _NOBODY,
    conditions: Conditions = _ALL_WELL,
    shown: Shown = _NOTHING,
    grants: LaneGrants = _NO_GRANTS,
) -> Decision:
    """Decide on one reading. A reading that matches more than one card is refused: the gateway never chooses.

    Args:
        credential: the reading.
        cards: every card that matches one of the reading's aliases.
        now: wall micros UTC.
        rules: the lane's rules for the direction of this vehicle.
        presence: who is where; only read, never changed.
        conditions: whether the clock, the card list and the recording can be relied on.
        shown: what else is known of this vehicle.
        grants: the grants of this lane.
    """
    trace: list[RuleResult] = []
    near = nearest(credential.plate, shown.near, now) if not cards and credential.plate else None
    if near is not None and not rules.near_plates:
        near = _only_named(near)
    coded = grants.of_code(credential.text) if not cards else None
    card, verdict = _known(credential, cards, near) if coded is None else (coded.card(), RuleVerdict(coded.shown))
    if verdict.reason is Reason.UNKNOWN_CREDENTIAL and _lets_unknown_pass(rules, conditions, shown, now):
        verdict = RuleVerdict(f"{verdict.seen}: not known, but the card list is too old to tell")
    trace.append(RuleResult("known", passed=verdict.reason is None, seen=verdict.seen))
    if card is None:
        granted = verdict.reason is None
        return Decision(granted, verdict.reason or Reason.FAIL_OPEN, None, tuple(trace))
    past = conditions.listed_at or 0 if not conditions.clock_trusted else 0
    at_least = max(now if conditions.at_least is None else conditions.at_least, past)
    now = max(now, at_least)
    case = Case(card, credential, now, at_least, rules, presence, conditions, shown, grants.of_card(card))
    found_by = Reason.VALID_CARD
    if near is not None:
        found_by = Reason.LOOK_ALIKE_PLATE if near.looks_alike else Reason.NEAR_PLATE
    return _by_rules(case, trace, found_by=found_by, grant=None if coded is None else coded.number)


def _by_rules(case: Case, trace: list[RuleResult], *, found_by: Reason, grant: int | None) -> Decision:
    """Apply the rules to a card that was found. `grant`: the number of the grant whose code it is, None for a card."""
    refusal: Reason | None = None
    notices: list[Reason] = []
    for name, rule in _RULES:
        verdict = rule(case)
        if verdict is None:
            continue
        trace.append(RuleResult(name, verdict.reason is None, verdict.seen))
        if verdict.reason is not None:
            refusal = verdict.reason
            break
        if verdict.notice is not None:
            notices.append(verdict.notice)
        grant = verdict.grant if grant is None else grant
    granted = refusal is None
    return Decision(
        granted=granted,
        reason=refusal or (found_by if grant is None else Reason.GRANT),
        card=case.card,
        trace=tuple(trace),
        notices=tuple(notices),
        grant=grant if granted else None,
        holder=case.rules.holder(case.card),
        opens=granted and case.card.first_person,
    )


def store_unavailable(rules: AccessRules = _ANY_LANE) -> Decision:
    """Decide without a readable card list: deny, unless the lane's ladder says open."""
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


def _known(credential: Credential, cards: Sequence[Card], near: PlateMatch | None) -> tuple[Card | None, RuleVerdict]:
    if len({card.card_id for card in cards}) > 1:
        return None, RuleVerdict(f"{len(cards)} cards", Reason.AMBIGUOUS_CREDENTIAL)
    if cards:
        return cards[0], RuleVerdict(f"card {cards[0].card_id}")
    if near is not None and near.card is not None:
        return near.card, RuleVerdict(f"card {near.card.card_id}, {near.seen}")
    seen = f"{credential.shown()}, {near.seen}" if near is not None else credential.shown()
    return None, RuleVerdict(seen, Reason.UNKNOWN_CREDENTIAL)


def _only_named(near: PlateMatch) -> PlateMatch | None:
    """Return a look-alike for the trace alone, with which nobody passes; None for a plate that differs."""
    if not near.looks_alike:
        return None
    seen = f"which looks like plate {near.plate}, listed in letters of another alphabet"
    return PlateMatch(None, seen)


def _card_list(case: Case) -> RuleVerdict:
    if not _is_stale(case.rules, case.conditions, case.now):
        return RuleVerdict("up to date")
    hours = (case.now - (case.conditions.listed_at or 0)) / 3_600_000_000
    seen = f"{hours:.0f} hours old"
    return RuleVerdict(seen, Reason.CARDS_STALE if case.rules.ladder.stale_cards is Stance.SECURE else None)


def _records(case: Case) -> RuleVerdict:
    if case.conditions.recording:
        return RuleVerdict("recorded")
    return RuleVerdict("waiting", Reason.NOTHING_RECORDED if case.rules.ladder.records is Stance.SECURE else None)


def _status(case: Case) -> RuleVerdict:
    status = case.card.status
    if status is CardStatus.ACTIVE:
        return RuleVerdict(status)
    if status is CardStatus.SUSPENDED and case.card.unread:
        return RuleVerdict(f"not understood: {case.card.unread}", Reason.RECORD_UNREADABLE)
    plate = status is CardStatus.BLOCKED and case.credential.plate
    return RuleVerdict(status, Reason.BLOCKED_PLATE if plate else _STATUS_REASONS[status])


def _vehicle(case: Case) -> RuleVerdict:
    blocked = next((card for card in case.shown.plates if card.status is CardStatus.BLOCKED), None)
    if blocked is not None:
        return RuleVerdict(f"plate of card {blocked.card_id}", Reason.BLOCKED_PLATE)
    return RuleVerdict("not blocked")


def _second(case: Case) -> RuleVerdict:
    if not case.rules.two_credentials:
        return RuleVerdict("not asked for")
    first = case.shown.first
    if first is None or first.card_id == case.card.card_id:
        return RuleVerdict(f"only {_named(case.card)}", Reason.SECOND_CREDENTIAL_AWAITED)
    return RuleVerdict(f"after {_named(first)}")


def _named(card: Card) -> str:
    return card.number if listed_id(card) is None else f"card {card.card_id}"


def _duress(case: Case) -> RuleVerdict:
    """Note a duress signal. Never refuse: a forced holder must not be seen to call for help."""
    first = case.shown.first
    signalled = case.card.duress or _is_forced(case) or (first is not None and first.duress)
    return RuleVerdict("noted", notice=Reason.DURESS) if signalled else RuleVerdict("none")


_RULES: Final[tuple[tuple[str, Callable[[Case], RuleVerdict | None]], ...]] = (
    ("duress", _duress),
    ("card list", _card_list),
    ("records", _records),
    ("status", _status),
    ("vehicle", _vehicle),
    ("PIN", _pin),
    ("clock", _clock),
    ("validity", _validity),
    ("zone", zone),
    ("lane hours", _lane_hours),
    ("schedule", _schedule),
    ("shared area", shared_area),
    ("first person", first_person),
    ("anti-passback", anti_passback),
    ("room", room),
    ("second credential", _second),
)
