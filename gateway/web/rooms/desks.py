"""What people and programs manage over the web: the outbox, webhooks, keys, the site file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from gateway.domain.writes import JsonObject
from gateway.site.running import Reloaded
from gateway.store import Books, OutboxRow, Reason, Webhook


class OutboxDesk(Protocol):
    """What is done with what waits for central. Numbers that there are not raise NotFoundError; whatever is done with
    a row that central has not refused raises CommandRefused.
    """

    async def page(self, *, after: int, limit: int, refused: bool) -> tuple[OutboxRow, ...]:
        """Rows above a number, oldest first; those that central refused, or all."""
        ...

    async def books(self) -> Books:
        """How many rows there ever were, and what became of them."""
        ...

    async def reasons(self) -> tuple[Reason, ...]:
        """Why what central has not refused still waits, those of the most rows first."""
        ...

    async def get(self, row_id: int) -> OutboxRow:
        """One row."""
        ...

    async def retry(self, row_id: int, *, by: str) -> OutboxRow:
        """Send it again as it is."""
        ...

    async def edit(self, row_id: int, fields: JsonObject, *, by: str) -> OutboxRow:
        """Send it again with other fields; null takes one out."""
        ...

    async def settle(self, row_id: int, central_id: int | None, *, by: str) -> OutboxRow:
        """Say under which id central has it, of which that was not known; None: it does not have it."""
        ...

    async def drop(self, row_id: int, *, by: str) -> OutboxRow:
        """Let go of it."""
        ...


class WebhookDesk(Protocol):
    """What is done with webhooks. Ids that there are not raise NotFoundError."""

    async def create(self, *, url: str, types: Sequence[str], secret: str | None, by: str) -> Webhook:
        """Register a receiver; a secret is drawn where none is given.

        Raises ReceiverRefused, SecretRefused and CommandRefused.
        """
        ...

    async def all(self) -> tuple[Webhook, ...]:
        """Every webhook, the oldest first."""
        ...

    async def remove(self, webhook_id: str) -> None:
        """Forget one with all that waits for it."""
        ...

    async def enable(self, webhook_id: str, *, by: str) -> Webhook:
        """Send to one again."""
        ...

    async def replay(self, webhook_id: str, *, since: int | None, until: int | None) -> int:
        """Send again what was given up, or all that happened in a time (wall micros). Raises CommandRefused."""
        ...

    async def test(self, webhook_id: str) -> str:
        """Send a message to try it out; "" when it was taken, else why not."""
        ...


class KnownKey(Protocol):
    """A program's key."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def permissions(self) -> frozenset[str]:
        """What it may do, by the interface's names."""
        ...


class Keys(Protocol):
    """Keys of programs, for the legacy family."""

    async def of(self, request: web.Request) -> KnownKey | None:
        """The key that a request carries; None without one that counts."""
        ...

    async def known(self, key: str) -> KnownKey | None:
        """Look a key up; None when it does not count, or no longer does."""
        ...


class SiteFile(Protocol):
    """The site file of the gateway that runs."""

    def notices(self) -> tuple[str, ...]:
        """What people must know of it, a sentence each. Never waits."""
        ...

    async def reload(self) -> Reloaded:
        """Read it again, and take what can be taken."""
        ...
