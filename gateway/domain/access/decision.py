"""Access decision: a pure function from a reading and its candidate cards to granted or denied, with a trace.

Rules are applied in the order of `_RULES`; the first that fails decides. Nothing is remembered here: anti-passback and
counts change with the passage, not with the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Final

from gateway.domain.access import places
from gateway.domain.access.case import UNASKED, Case, Verdict, or_granted
from gateway.domain.access.reasons import Decision, Reason, RuleResult
from gateway.domain.access.rules import AccessRules, Conditions, Shown, Stance
from gateway.domain.credentials import Card, CardStatus, Credential
from gateway.domain.grants import LaneGrants, listed_id
from gateway.domain.plates import PlateMatch, nearest
from gateway.domain.presence import AntiPassback, Presence

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


def _clock(case: Case) -> Verdict:
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


def _validity(case: Case) -> Verdict:
    """Check that the card is within its dates."""
    card, now = case.card, case.now
    if not case.asks_time:
        return UNASKED
    if card.valid_from is not None and now < card.valid_from:
        return or_granted(case, Verdict(f"from {case.moment(card.valid_from)}", Reason.NOT_YET_VALID))
    if card.valid_until is not None and case.at_least >= card.valid_until:
        return or_granted(case, Verdict(f"until {case.moment(card.valid_until)}", Reason.EXPIRED))
    return Verdict("within")


def _lane_hours(case: Case) -> Verdict:
    """Check that the lane itself is open."""
    schedule = case.rules.schedule
    if schedule is None:
        return Verdict("always")
    if not case.asks_time:
        return UNASKED
    if case.rules.calendar.is_open(schedule, case.now):
        return Verdict(f"within {schedule.name}")
    return Verdict(f"outside {schedule.name} at {case.moment(case.now)}", Reason.LANE_CLOSED)


def _schedule(case: Case) -> Verdict:
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


def duress_pin(pin: str) -> str:
    """Return the PIN that signals duress (the last digit one higher); "" if the card has no PIN."""
    return pin[:-1] + str((int(pin[-1]) + 1) % 10) if pin[-1:].isdecimal() else ""


def _is_forced(case: Case) -> bool:
    """Return whether the typed PIN signals duress."""
    own = case.card.pin
    return bool(own) and case.rules.asks_pin and _same(duress_pin(own), case.shown.pin)


def _pin(case: Case) -> Verdict:
    """Check the card's PIN if the lane asks for one. A plate has no PIN, so it alone opens nothing there."""
    if not case.rules.asks_pin:
        return Verdict("not asked for")
    if case.credential.plate:
        return Verdict("a plate has none", Reason.PIN_MISSING)
    if not case.card.pin:
        return Verdict("the card has none", Reason.NO_PIN)
    if case.shown.pin_locked or not case.shown.pin:
        locked = case.shown.pin_locked
        return Verdict("locked" if locked else "none typed", Reason.PIN_LOCKED if locked else Reason.PIN_MISSING)
    if _same(case.card.pin, case.shown.pin) or _is_forced(case):
        return Verdict("right")
    return Verdict("another", Reason.WRONG_PIN)


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
    card, verdict = _known(credential, cards, near) if coded is None else (coded.card(), Verdict(coded.shown))
    if verdict.reason is Reason.UNKNOWN_CREDENTIAL and _lets_unknown_pass(rules, conditions, shown, now):
        verdict = Verdict(f"{verdict.seen}: not known, but the card list is too old to tell")
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


def _known(credential: Credential, cards: Sequence[Card], near: PlateMatch | None) -> tuple[Card | None, Verdict]:
    if len({card.card_id for card in cards}) > 1:
        return None, Verdict(f"{len(cards)} cards", Reason.AMBIGUOUS_CREDENTIAL)
    if cards:
        return cards[0], Verdict(f"card {cards[0].card_id}")
    if near is not None and near.card is not None:
        return near.card, Verdict(f"card {near.card.card_id}, {near.seen}")
    seen = f"{credential.shown()}, {near.seen}" if near is not None else credential.shown()
    return None, Verdict(seen, Reason.UNKNOWN_CREDENTIAL)


def _only_named(near: PlateMatch) -> PlateMatch | None:
    """Return a look-alike for the trace alone, with which nobody passes; None for a plate that differs."""
    if not near.looks_alike:
        return None
    seen = f"which looks like plate {near.plate}, listed in letters of another alphabet"
    return PlateMatch(None, seen)


def _card_list(case: Case) -> Verdict:
    if not _is_stale(case.rules, case.conditions, case.now):
        return Verdict("up to date")
    hours = (case.now - (case.conditions.listed_at or 0)) / 3_600_000_000
    seen = f"{hours:.0f} hours old"
    return Verdict(seen, Reason.CARDS_STALE if case.rules.ladder.stale_cards is Stance.SECURE else None)


def _records(case: Case) -> Verdict:
    if case.conditions.recording:
        return Verdict("recorded")
    return Verdict("waiting", Reason.NOTHING_RECORDED if case.rules.ladder.records is Stance.SECURE else None)


def _status(case: Case) -> Verdict:
    status = case.card.status
    if status is CardStatus.ACTIVE:
        return Verdict(status)
    if status is CardStatus.SUSPENDED and case.card.unread:
        return Verdict(f"not understood: {case.card.unread}", Reason.RECORD_UNREADABLE)
    plate = status is CardStatus.BLOCKED and case.credential.plate
    return Verdict(status, Reason.BLOCKED_PLATE if plate else _STATUS_REASONS[status])


def _vehicle(case: Case) -> Verdict:
    blocked = next((card for card in case.shown.plates if card.status is CardStatus.BLOCKED), None)
    if blocked is not None:
        return Verdict(f"plate of card {blocked.card_id}", Reason.BLOCKED_PLATE)
    return Verdict("not blocked")


def _second(case: Case) -> Verdict:
    if not case.rules.two_credentials:
        return Verdict("not asked for")
    first = case.shown.first
    if first is None or first.card_id == case.card.card_id:
        return Verdict(f"only {_named(case.card)}", Reason.SECOND_CREDENTIAL_AWAITED)
    return Verdict(f"after {_named(first)}")


def _named(card: Card) -> str:
    return card.number if listed_id(card) is None else f"card {card.card_id}"


def _duress(case: Case) -> Verdict:
    """Note a duress signal. Never refuse: a forced holder must not be seen to call for help."""
    first = case.shown.first
    signalled = case.card.duress or _is_forced(case) or (first is not None and first.duress)
    return Verdict("noted", notice=Reason.DURESS) if signalled else Verdict("none")


_RULES: Final[tuple[tuple[str, Callable[[Case], Verdict | None]], ...]] = (
    ("duress", _duress),
    ("card list", _card_list),
    ("records", _records),
    ("status", _status),
    ("vehicle", _vehicle),
    ("PIN", _pin),
    ("clock", _clock),
    ("validity", _validity),
    ("zone", places.zone),
    ("lane hours", _lane_hours),
    ("schedule", _schedule),
    ("shared area", places.shared_area),
    ("first person", places.first_person),
    ("anti-passback", places.anti_passback),
    ("room", places.room),
    ("second credential", _second),
)
