"""The wiring of authentication: accounts, keys, sessions, sign-in, and viewers."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cached_property

import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.site.models import Site
from gateway.store import Store
from gateway.web.auth.accounts import Roster
from gateway.web.auth.api_keys import ApiKeys
from gateway.web.auth.central_sign_in import CentralAccounts, CentralSignIn
from gateway.web.auth.second_factor import SecondFactor
from gateway.web.auth.sessions import CentralSessions, MemorySessions, Sessions
from gateway.web.auth.sign_in import SignIn
from gateway.web.auth.view_tokens import ViewTokens
from gateway.web.auth.viewers import LinkMakers, Viewers
from gateway.web.register.register import Register

log = structlog.get_logger(__name__)

_ENDED_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Authentication:
    """The parts of authentication, each built once. Call `load` before the first request, and run `run` as a task.

    Attributes:
        site: the site file.
        store: the store.
        guessable: the hashes of passwords that are known to be easily guessed, by the account's name.
        central_accounts: sign-in at central; None for a site without central.
        clock: the monotonic clock and the wall clock.
    """

    site: Site
    store: Store
    guessable: MutableMapping[str, str]
    central_accounts: CentralAccounts | None
    clock: Clock

    @cached_property
    def roster(self) -> Roster:
        """All accounts of the site."""
        return Roster(accounts=self.store.accounts, guessable=self.guessable)

    @cached_property
    def keys(self) -> ApiKeys:
        """Keys of programs."""
        return ApiKeys(api_keys=self.store.api_keys, clock=self.clock)

    @cached_property
    def central_sessions(self) -> CentralSessions:
        """Callers' sessions at central."""
        return CentralSessions(central=self.central_accounts)

    @cached_property
    def sessions(self) -> Sessions:
        """The gateway's sessions."""
        return Sessions(
            kept=MemorySessions(stored=self.store.sessions),
            roster=self.roster,
            central_sessions=self.central_sessions,
            clock=self.clock,
            idle_minutes=self.site.api.session_idle_minutes,
            longest_hours=self.site.api.session_hours,
        )

    @cached_property
    def sign_in(self) -> SignIn:
        """Sign-in: the start of every session."""
        return SignIn(
            sessions=self.sessions,
            roster=self.roster,
            second_factor=SecondFactor(accounts=self.store.accounts, clock=self.clock),
            central=self._central_sign_in(),
            central_sessions=self.central_sessions,
            journal=self.store.journal,
            clock=self.clock,
        )

    @cached_property
    def viewers(self) -> Viewers:
        """Access for players without a session."""
        tokens = ViewTokens(monotonic=self.clock.monotonic)
        section = self.site.central
        signs_in = self.central_accounts is not None and section is not None and section.accounts.sign_in
        makers = LinkMakers(
            roster=self.roster,
            remembered=self.store.remembered_accounts,
            remember_days=section.accounts.remember_days if section is not None and signs_in else None,
            clock=self.clock,
        )
        return Viewers(makers=makers, tokens=tokens, sessions=self.sessions, keys=self.keys)

    @cached_property
    def register(self) -> Register:
        """Changes of accounts, roles and keys, which take effect at once."""
        return Register(
            accounts=self.store.accounts,
            api_keys=self.store.api_keys,
            journal=self.store.journal,
            remembered_accounts=self.store.remembered_accounts,
            sessions=self.store.sessions,
            clock=self.clock,
            changed=self._changed,
        )

    async def load(self) -> None:
        """Read accounts and keys."""
        await self.roster.load()
        await self.keys.load()

    async def run(self) -> None:
        """End sessions at central once their sessions here have ended; repeats every minute until cancelled."""
        while True:
            await asyncio.sleep(_ENDED_SECONDS)
            try:
                await self.sessions.ended_elsewhere()
            except StoreError as error:
                log.debug("sessions_not_read", error=str(error))  # the store reports it; the next round tries again

    def _central_sign_in(self) -> CentralSignIn | None:
        section = self.site.central
        if self.central_accounts is None or section is None or not section.accounts.sign_in:
            return None
        return CentralSignIn(
            central=self.central_accounts,
            remembered=self.store.remembered_accounts,
            roster=self.roster,
            clock=self.clock,
            remember_days=section.accounts.remember_days,
        )

    async def _changed(self, usernames: tuple[str, ...]) -> None:
        for username in usernames:
            self.sessions.changed(username)
        await self.load()
        self.store.changes.bump()
