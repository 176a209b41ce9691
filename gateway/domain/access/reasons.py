"""Decision: granted or denied, with the reason and the result of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from gateway.domain.credentials import Card


class Reason(StrEnum):
    """Reason for a grant or denial, or a notice beside a grant."""

    VALID_CARD = "valid_card"
    NEAR_PLATE = "near_plate"
    LOOK_ALIKE_PLATE = "look_alike_plate"
    GRANT = "grant"
    FAIL_OPEN = "fail_open"
    UNKNOWN_CREDENTIAL = "unknown_credential"
    AMBIGUOUS_CREDENTIAL = "ambiguous_credential"
    SUSPENDED = "suspended"
    RECORD_UNREADABLE = "record_unreadable"
    LOST = "lost"
    BLOCKED = "blocked"
    BLOCKED_PLATE = "blocked_plate"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    WRONG_ZONE = "wrong_zone"
    UNKNOWN_SCHEDULE = "unknown_schedule"
    OUTSIDE_SCHEDULE = "outside_schedule"
    LANE_CLOSED = "lane_closed"
    ANTI_PASSBACK = "anti_passback"
    AREA_FULL = "area_full"
    AREA_APART = "area_apart"
    FIRST_PERSON_AWAITED = "first_person_awaited"
    SECOND_CREDENTIAL_AWAITED = "second_credential_awaited"
    NO_PIN = "no_pin"
    PIN_MISSING = "pin_missing"
    WRONG_PIN = "wrong_pin"
    PIN_LOCKED = "pin_locked"
    CARDS_STALE = "cards_stale"
    CLOCK_UNTRUSTED = "clock_untrusted"
    NOTHING_RECORDED = "nothing_recorded"
    STORE_UNAVAILABLE = "store_unavailable"
    DURESS = "duress"


_SENTENCES = {
    Reason.VALID_CARD: "the card is valid",
    Reason.NEAR_PLATE: "the plate was probably misread; it is close to one valid plate and to no other",
    Reason.LOOK_ALIKE_PLATE: "the plate looks like one valid plate and no other, in letters of another alphabet",
    Reason.GRANT: "a grant lets the holder pass",
    Reason.FAIL_OPEN: "the lane opens while the card list cannot be relied on",
    Reason.UNKNOWN_CREDENTIAL: "no card has this number or plate",
    Reason.AMBIGUOUS_CREDENTIAL: "more than one card has this number or plate",
    Reason.SUSPENDED: "the card is suspended",
    Reason.RECORD_UNREADABLE: "the card's record could not be understood, so it opens nothing",
    Reason.LOST: "the card is reported lost",
    Reason.BLOCKED: "the card is blocked",
    Reason.BLOCKED_PLATE: "the vehicle's plate is blocked",
    Reason.EXPIRED: "the card has expired",
    Reason.NOT_YET_VALID: "the card is not valid yet",
    Reason.WRONG_ZONE: "the card is not for this lane",
    Reason.UNKNOWN_SCHEDULE: "the card has a schedule that this site does not know",
    Reason.OUTSIDE_SCHEDULE: "the card is not valid at this time",
    Reason.LANE_CLOSED: "the lane is not open at this time",
    Reason.ANTI_PASSBACK: "the card was already used in this direction and has not come back",
    Reason.AREA_FULL: "the area is full",
    Reason.AREA_APART: "the other gateways of the area cannot be asked",
    Reason.FIRST_PERSON_AWAITED: "nobody who may open the area has entered today",
    Reason.SECOND_CREDENTIAL_AWAITED: "a second card or plate is needed",
    Reason.NO_PIN: "this lane asks for a PIN, and the card has none",
    Reason.PIN_MISSING: "this lane asks for a card and its PIN",
    Reason.WRONG_PIN: "the PIN is wrong",
    Reason.PIN_LOCKED: "too many wrong PINs were typed; the card must wait before the next try",
    Reason.CARDS_STALE: "the card list is too old",
    Reason.CLOCK_UNTRUSTED: "the time is not certain, and the card depends on it",
    Reason.NOTHING_RECORDED: "nothing can be recorded",
    Reason.STORE_UNAVAILABLE: "the card list could not be read",
    Reason.DURESS: "the holder signals duress",
}


def sentence_of(reason: Reason) -> str:
    """Write a reason for people."""
    return _SENTENCES[reason]


class RuleResult(NamedTuple):
    """Result of one rule: its name, whether it passed, and its finding in words."""

    rule: str
    passed: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision: granted or denied, the reason, and the result of each rule.

    Attributes:
        granted: whether the vehicle may pass.
        reason: why it is granted or denied.
        card: the card that was decided on, None if the reading matches no single card.
        trace: the result of each rule that was applied, in order; a denial ends with the rule that failed.
        notices: what a person should know although it kept nobody out: duress, a soft anti-passback.
        grant: the number of the grant that lets the vehicle pass, None when none was needed.
        holder: the name by which presence counts the card's holder, "" for nobody.
        opens: whether the holder, by entering, opens the area to others.
        claim: the claim of the holder and the place among the gateways of a shared area, "" for none.
    """

    granted: bool
    reason: Reason
    card: Card | None
    trace: tuple[RuleResult, ...]
    notices: tuple[Reason, ...] = ()
    grant: int | None = None
    holder: str = ""
    opens: bool = False
    claim: str = ""

    def with_claim(self, claim: str, seen: str) -> Decision:
        """Return the decision with its claim, and what became of it, in the trace."""
        return replace(self, claim=claim, trace=(*self.trace, RuleResult("claim", passed=True, seen=seen)))

    def traced(self) -> str:
        """Write each rule with its result, as events record it."""
        rules = [f"{rule.rule}: {'passed' if rule.passed else 'FAILED'} ({rule.seen})" for rule in self.trace]
        return "; ".join(rules)

    @staticmethod
    def rule_failed(line: str) -> bool:
        """Tell whether one rule's part of what `traced` has written is of a rule that failed."""
        return line.partition(": ")[2].startswith("FAILED")

    def sentence(self) -> str:
        """Write the reason for people."""
        if self.reason is Reason.RECORD_UNREADABLE and self.card is not None:
            return f"{sentence_of(self.reason)} ({self.card.unread})"
        return sentence_of(self.reason)
