"""Access for players without a session: an address with a token opens what its owner may see at that moment.

A link to evidence gives access only while its maker may see it. An open WebRTC view ends when the session of the caller
who opened it ends, or the caller may not see the camera any more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog
from aiohttp import web

from gateway.domain.errors import CameraUnavailable, NotFoundError, StoreError
from gateway.domain.evidence import EvidenceLink, Maker
from gateway.domain.viewing import NotShown
from gateway.recording.viewing import Viewing
from gateway.runtime.clock import Clock
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.web.auth.accounts import Roster
from gateway.web.auth.api_keys import ApiKeys
from gateway.web.auth.callers import NOBODY, Caller, SessionCarrier
from gateway.web.auth.sessions import Sessions
from gateway.web.auth.view_tokens import TOKEN, Issued, TokenView, ViewTokens
from gateway.web.http.addresses import public_origin
from gateway.web.operation import EVERYTHING, VIEW_CAMERAS, Rule

_DAY = 86_400_000_000

log = structlog.get_logger(__name__)

CHECK_SECONDS = 5.0
"""Seconds between two checks of the permissions of open views."""


def maker_of(caller: Caller) -> Maker:
    """Return whose right a link of this caller has."""
    if caller.carrier is SessionCarrier.LOCAL:
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


@dataclass(frozen=True, kw_only=True)
class Viewers:
    """Addresses with tokens, and the callers behind them."""

    makers: LinkMakers
    tokens: ViewTokens
    sessions: Sessions
    keys: ApiKeys

    def address(self, request: web.Request, path: str, view: TokenView, caller: Caller) -> str:
        """Return the absolute address of `path` with a token for the caller."""
        return f"{public_origin(request)}{path}?{TOKEN}={self.tokens.issue(view, caller).text}"

    def token(self, view: TokenView, caller: Caller) -> Issued:
        """Return a token for the caller, without an address."""
        return self.tokens.issue(view, caller)

    async def caller(self, token: str, view: TokenView, rule: Rule) -> Caller:
        """Return the caller for whom the token was issued, with present permissions and the carrier ADDRESS.

        NOBODY when the token is not valid for this view, or the caller's session, key or permission is gone.
        """
        now = await self.asker(token, view, rule)
        return replace(now, carrier=SessionCarrier.ADDRESS) if now.signed_in else NOBODY

    async def asker(self, token: str, view: TokenView, rule: Rule) -> Caller:
        """Return the same as `caller`, but with the carrier by which the token was asked for."""
        asker = self.tokens.issued_to(token, view)
        return NOBODY if asker is None else await self.now(asker, rule)

    async def now(self, asker: Caller, rule: Rule) -> Caller:
        """Return this caller with present permissions; NOBODY when the session, key or permission is gone."""
        now = await (self._by_key(asker) if asker.carrier is SessionCarrier.KEY else self.sessions.refreshed(asker))
        return now if now.may(rule) else NOBODY

    async def _by_key(self, asker: Caller) -> Caller:
        key = await self.keys.known(asker.token)
        return NOBODY if key is None else replace(asker, permissions=key.permissions)


@dataclass(frozen=True, slots=True)
class _OpenView:
    camera_id: int
    asker: Caller


class OpenViews:
    """The open views. Every 5 s each caller's permission is checked again, which also counts as use of the session."""

    def __init__(self, *, viewing: Viewing, viewers: Viewers) -> None:
        self._viewing = viewing
        self._viewers = viewers
        self._open: dict[str, _OpenView] = {}

    def add(self, camera_id: int, view: str, asker: Caller) -> None:
        """Add a view that was just opened for this caller."""
        self._open[view] = _OpenView(camera_id, asker)

    def remove(self, view: str) -> None:
        """Forget a view that was ended."""
        self._open.pop(view, None)

    async def run(self) -> None:
        """Check all views every 5 s, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for view, opened in tuple(self._open.items()):
                await self._check(view, opened)

    async def _check(self, view: str, opened: _OpenView) -> None:
        try:
            await self._viewing.look(opened.camera_id, view)
            if (await self._viewers.now(opened.asker, VIEW_CAMERAS)).signed_in:
                return
            await self._viewing.end(opened.camera_id, view)
            log.info("view_ended", camera_id=opened.camera_id, why="who opened it may not watch any more")
        except (StoreError, CameraUnavailable) as error:
            log.debug("view_not_checked", error=str(error))  # the next round tries again
            return
        except (NotShown, NotFoundError):
            pass  # it has ended by itself
        self.remove(view)
