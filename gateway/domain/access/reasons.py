"""Decision: granted or denied, with the reason and the result of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from gateway.domain.credentials import Card
from gateway.texts import Text, text


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


def words_of(reason: Reason) -> Text:
    """Write a reason for people."""
    return text(f"reason.{reason}")


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

    def words(self) -> Text:
        """Write the reason for people."""
        if self.reason is Reason.RECORD_UNREADABLE and self.card is not None:
            return text("reason_for.record_unreadable", unread=self.card.unread)
        return words_of(self.reason)
