"""The access decision: pure, with a trace of every rule that was applied."""

from gateway.domain.access.decision import decide, store_unavailable
from gateway.domain.access.reasons import Decision, Reason, RuleResult, words_of
from gateway.domain.access.rules import AccessRules, Coming, Conditions, Ladder, Shown, Stance, holder_of

__all__ = [
    "AccessRules",
    "Coming",
    "Conditions",
    "Decision",
    "Ladder",
    "Reason",
    "RuleResult",
    "Shown",
    "Stance",
    "decide",
    "holder_of",
    "store_unavailable",
    "words_of",
]
