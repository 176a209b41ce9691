"""Rules for the PIN that is typed after a card.

A holder who is forced to open types the PIN with its last digit one higher (9 becomes 0), as usual with controllers:
the gate opens, and an alarm is recorded that people at the reader cannot see.
"""

from __future__ import annotations

from hmac import compare_digest

from gateway.domain.access.case import Case, Verdict
from gateway.domain.access.reasons import Reason


def duress_pin(pin: str) -> str:
    """Return the PIN that signals duress (the last digit one higher); "" if the card has no PIN."""
    return pin[:-1] + str((int(pin[-1]) + 1) % 10) if pin[-1:].isdecimal() else ""


def is_forced(case: Case) -> bool:
    """Return whether the typed PIN signals duress."""
    own = case.card.pin
    return bool(own) and case.rules.asks_pin and _same(duress_pin(own), case.shown.pin)


def pin(case: Case) -> Verdict:
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
    if _same(case.card.pin, case.shown.pin) or is_forced(case):
        return Verdict("right")
    return Verdict("another", Reason.WRONG_PIN)


def _same(one: str, other: str) -> bool:
    """Compare two PINs in constant time."""
    return compare_digest(one.encode(), other.encode())
