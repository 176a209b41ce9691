"""The access decision: a pure function from a reading and the cards it may mean to granted or denied, with a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.credentials import Card, CardStatus, Credential


class Reason(StrEnum):
    """Why access was granted or denied."""

    VALID_CARD = "valid_card"
    UNKNOWN_CREDENTIAL = "unknown_credential"
    AMBIGUOUS_CREDENTIAL = "ambiguous_credential"
    SUSPENDED = "suspended"
    LOST = "lost"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    STORE_UNAVAILABLE = "store_unavailable"


_SENTENCES = {
    Reason.VALID_CARD: "the card is valid",
    Reason.UNKNOWN_CREDENTIAL: "no card has this number",
    Reason.AMBIGUOUS_CREDENTIAL: "more than one card has this number",
    Reason.SUSPENDED: "the card is suspended",
    Reason.LOST: "the card is reported lost",
    Reason.EXPIRED: "the card has expired",
    Reason.NOT_YET_VALID: "the card is not valid yet",
    Reason.STORE_UNAVAILABLE: "the card list could not be read",
}


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule of a decision: its name, whether it let pass, and what it saw."""

    rule: str
    passed: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Granted or denied, why, and each rule on the way."""

    granted: bool
    reason: Reason
    card: Card | None
    trace: tuple[RuleResult, ...]

    def sentence(self) -> str:
        """The reason for people."""
        return _SENTENCES[self.reason]


def decide(credential: Credential, cards: Sequence[Card], *, now: int) -> Decision:
    """Decide on one reading.

    Args:
        credential: what was read.
        cards: every card that answers to one of the reading's aliases.
        now: wall micros UTC.

    A reading that means more than one card is refused: the gateway never picks.
    """
    trace: list[RuleResult] = []

    def denied(rule: str, reason: Reason, seen: str, card: Card | None) -> Decision:
        trace.append(RuleResult(rule, passed=False, seen=seen))
        return Decision(granted=False, reason=reason, card=card, trace=tuple(trace))

    def passed(rule: str, seen: str) -> None:
        trace.append(RuleResult(rule, passed=True, seen=seen))

    if not cards:
        return denied("known", Reason.UNKNOWN_CREDENTIAL, credential.shown(), None)
    if len({card.card_id for card in cards}) > 1:
        return denied("known", Reason.AMBIGUOUS_CREDENTIAL, f"{len(cards)} cards", None)
    card = cards[0]
    passed("known", f"card {card.card_id}")
    if card.status is not CardStatus.ACTIVE:
        reasons = {
            CardStatus.SUSPENDED: Reason.SUSPENDED,
            CardStatus.LOST: Reason.LOST,
            CardStatus.EXPIRED: Reason.EXPIRED,
        }
        return denied("status", reasons[card.status], card.status, card)
    passed("status", card.status)
    if card.valid_from is not None and now < card.valid_from:
        return denied("validity", Reason.NOT_YET_VALID, f"from {card.valid_from}", card)
    if card.valid_until is not None and now >= card.valid_until:
        return denied("validity", Reason.EXPIRED, f"until {card.valid_until}", card)
    passed("validity", "within")
    return Decision(granted=True, reason=Reason.VALID_CARD, card=card, trace=tuple(trace))


def store_unavailable() -> Decision:
    """The decision when the card list cannot be read in time: fail secure."""
    trace = (RuleResult("card list", passed=False, seen="not readable"),)
    return Decision(granted=False, reason=Reason.STORE_UNAVAILABLE, card=None, trace=trace)
