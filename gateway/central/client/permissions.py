"""What central does not permit to the gateway's own account, and how often a fresh sign-in is worth a try."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from gateway.central.client.answers import CentralDenied, Verdict
from gateway.domain.errors import CentralUnavailable

log = structlog.get_logger(__name__)

_RENEWAL_SECONDS = 900.0


class Permissions:
    """Operations that were denied, until central permits them."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._renewed_for: dict[str, float] = {}
        self.denied: tuple[tuple[str, str], ...] = ()

    def may_sign_in_for(self, operation: str) -> bool:
        """Whether a fresh session may have the permission that this one lacks; not asked again for a while."""
        now = self._monotonic()
        if now - self._renewed_for.get(operation, float("-inf")) < _RENEWAL_SECONDS:
            return False
        self._renewed_for[operation] = now
        return True

    def note(self, operation: str, verdict: Verdict) -> None:
        """Note whether the account may do that; an answer that says neither changes nothing."""
        known = dict(self.denied)
        if isinstance(verdict, CentralDenied):
            known[operation] = verdict.said
        elif isinstance(verdict, CentralUnavailable) or known.pop(operation, None) is None:
            return
        else:
            self._renewed_for.pop(operation, None)
        if (told := tuple(sorted(known.items()))) != self.denied:
            self.denied = told
            if isinstance(verdict, CentralDenied):
                log.warning("central_does_not_permit", operation=operation, said=verdict.said)
