"""The wiring of the fleet's parts, and how commands of the fleet reach the site."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from gateway.app.contexts import ServicesContext
from gateway.central.pull.card_notices import CardNotices
from gateway.domain.errors import ConfigError
from gateway.site.edits import Edit, edited, inverse
from gateway.site.running_site import Reloaded

if TYPE_CHECKING:
    from gateway.fleet.wiring import FleetParts

Once = Callable[[str, Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs work once, in a named task of the services."""


def fleet_parts(context: ServicesContext, once: Once) -> FleetParts | None:
    """Build the parts for the site in force; None without `[fleet]`. Raises ConfigError for a missing secret."""
    site, base = context.site(), context.base
    if site.fleet is None:
        return None
    from gateway.fleet.commands_down import CommandDesk  # noqa: PLC0415  # as below
    from gateway.fleet.offered_files import FileMaker  # noqa: PLC0415  # as below
    from gateway.fleet.wiring import FleetParts  # noqa: PLC0415  # most gateways start without the library

    reach = _Reach(context)
    files = FileMaker(bundle=lambda: context.support().make(), recording=context.recording, proofs=context.proofs)
    return FleetParts.of(
        site.fleet,
        site_name=site.site.name,
        version=version("edge-gateway"),
        secrets=base.run.secrets,
        store=base.store,
        verdict=context.verdict,
        desk=CommandDesk(
            lanes=base.lanes,
            permissions=reach.permissions,
            reload=lambda by: context.site_file.reload(by=by),
            edit=reach.edit,
            tried=context.site_file.outcome,
            files=files,
            start=once,
            notices=reach.notices,
        ),
        clock=base.clock,
    )


@dataclass(frozen=True, slots=True)
class _Reach:
    """Parts of the services that commands of the fleet reach."""

    context: ServicesContext

    async def edit(self, by: str, edits: Sequence[Edit]) -> tuple[Reloaded, tuple[Edit, ...]]:
        """Change the site file on trial; return the edits that take it back. Raises ConfigError."""
        site_file = self.context.site_file
        try:
            text, _, _ = await site_file.look()
        except OSError as error:
            raise ConfigError(f"the site file cannot be read: {error.strerror}") from error
        changed = edited(text, edits)
        back = inverse(text, edits)
        return await site_file.reload(by=by, text=changed), back

    async def permissions(self, account: str) -> frozenset[str] | None:
        """Return the permissions of an account of the site; None if it may not sign in. Raises StoreError."""
        accounts = await self.context.base.store.accounts.all()
        stored = next((one for one in accounts if one.username == account), None)
        return None if stored is None or stored.disabled else stored.permissions

    def notices(self) -> CardNotices | None:
        """Return the line to central, which fetches noticed cards; None without central."""
        return None if (sync := self.context.central.parts.sync) is None else sync.notices
