"""Central as the web layer knows it: how the two stand, writes, its accounts, and the way there for the rest."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gateway.domain.accounts import CentralAdmission
from gateway.domain.errors import CentralRefused
from gateway.domain.relaying import RelayedAnswer, RelayedRequest
from gateway.domain.writes import JsonObject, WriteOperation, Written


class CentralView(Protocol):
    """How the site and central stand. Times are wall micros UTC."""

    @property
    def reachable(self) -> bool | None:
        """Whether central answers; None before the first try."""
        ...

    @property
    def since(self) -> int:
        """Since when that is so."""
        ...

    @property
    def error(self) -> str:
        """Why it does not, in one sentence; "" while it does."""
        ...

    @property
    def last_sign_in(self) -> int | None:
        """When the gateway last signed in, None for never."""
        ...

    @property
    def pulled_at(self) -> int | None:
        """When central's lists were last fetched, None for never."""
        ...

    @property
    def pulled(self) -> str:
        """What was fetched then, in words."""
        ...

    @property
    def progress(self) -> str:
        """How far a fetch under way is; between them what is still to be fetched anew, or ""."""
        ...

    @property
    def refreshing(self) -> bool:
        """Whether everything is, or will be, fetched anew."""
        ...

    @property
    def reconciling(self) -> bool:
        """Return whether what was sent is, or will be, compared with central."""
        ...

    @property
    def reconciled(self) -> str:
        """Return what the last such comparing found, in words; "" before the first."""
        ...

    @property
    def incomplete(self) -> bool:
        """Whether the last fetch lacks a list, or one could not be believed."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a technician should know, a sentence each."""
        ...

    @property
    def clock_ahead(self) -> float | None:
        """By how many seconds its clock is ahead of this machine's at most; None while it does not say."""
        ...


class Central(Protocol):
    """The service above."""

    def snapshot(self) -> CentralView:
        """How the two stand now. Never waits."""
        ...

    async def reconcile(self, *, days: int, by: str) -> None:
        """Compare what was sent in these days with central, and send again what is missing. Raises StoreError."""
        ...

    async def refresh(self, *, by: str) -> None:
        """Fetch everything anew, now or as soon as central answers. It is on disk then. Raises StoreError."""
        ...


class CentralWrites(Protocol):
    """The one way of writing what central also keeps."""

    @property
    def alone(self) -> bool:
        """Whether there is no central, so that what is written stays at the site."""
        ...

    async def write(self, operation: WriteOperation, body: JsonObject) -> Written:
        """Carry a write out: at central while it answers, otherwise held at the site until it does.

        `body` is as the interface has it, with the `id` of a record that exists. Raises CentralRefused with central's
        status and words, StoreError when the disk takes nothing, NoRoom when too much waits for central.
        """
        ...

    async def admit(self) -> None:
        """Raise NoRoom when the backlog is full, for what is written by another way."""
        ...


class Relay(Protocol):
    """The way to central for what only central answers."""

    @property
    def largest(self) -> int:
        """How many bytes a body may have."""
        ...

    def away(self) -> bool:
        """Whether central is known not to answer. Never waits."""
        ...

    def answer(self, asked: RelayedRequest) -> AbstractAsyncContextManager[RelayedAnswer]:
        """Carry a request; central's answer, whose body is to be read inside. Raises NotRelayed."""
        ...


class CentralAccounts(Protocol):
    """Central's accounts. What is refused to a person says nothing of the gateway's own standing with central."""

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """A session at central. Raises CentralRefused, and CentralUnavailable when central does not say."""
        ...

    async def is_believed(self, refusal: CentralRefused) -> bool:
        """Return whether a refusal is central's own word, not that of what stands before it. Never raises."""
        ...

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Return what an answer of central's that signs somebody in says; None for one without a session."""
        ...

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, CentralUnavailable."""
        ...

    async def sign_out(self, token: str) -> None:
        """End a session, within 2 s. Never raises: one that cannot be ended now ends by central's own time."""
        ...
