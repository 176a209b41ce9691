"""Makers of links to evidence: a link gives access only while its maker may see the evidence themselves."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.evidence import EvidenceLink, Maker
from gateway.runtime.clock import Clock
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.web.auth.accounts import Roster
from gateway.web.auth.callers import Caller, Carrier
from gateway.web.operation import EVERYTHING, Rule

_DAY = 86_400_000_000


def maker_of(caller: Caller) -> Maker:
    """Return whose right a link of this caller has."""
    if caller.carrier is Carrier.LOCAL:
        return Maker.LOCAL
    return Maker.CENTRAL if caller.central else Maker.SITE


@dataclass(frozen=True, kw_only=True)
class LinkMakers:
    """The present rights of whoever made a link.

    Attributes:
        roster: the site's accounts.
        remembered: accounts of central as they were at their last sign-in here.
        remember_days: for so long a sign-in of central's account is believed; None where they may not sign in.
        clock: the wall clock.
    """

    roster: Roster
    remembered: RememberedAccounts
    remember_days: float | None
    clock: Clock

    async def may(self, link: EvidenceLink, rule: Rule) -> bool:
        """Return whether the link's maker is let in by the rule now. Raises StoreError."""
        return not rule.missing(await self._permissions(link))

    async def _permissions(self, link: EvidenceLink) -> frozenset[str]:
        match link.maker:
            case Maker.LOCAL:
                return frozenset({EVERYTHING})
            case Maker.CENTRAL if self.remember_days is not None:
                now = self.clock.wall().micros
                return await self.remembered.rights(
                    link.username, now=now, verified_after=now - int(self.remember_days * _DAY)
                )
            case Maker.SITE if (account := self.roster.get(link.username)) is not None and not account.disabled:
                return account.permissions
        return frozenset()
