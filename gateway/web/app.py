"""The application: every operation of the catalogue bound to its handler."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

from aiohttp import web

from drivers.listening.addresses import is_this_machine, parsed_address
from drivers.listening.http import HttpPlaces
from drivers.listening.places import Places
from gateway.web.auth.admission import Admission
from gateway.web.auth.external_sign_in import ExternalSignIn
from gateway.web.catalogue import FAMILIES, OPERATIONS, PUBLIC
from gateway.web.context import InterfaceContext
from gateway.web.families import Route
from gateway.web.http.addresses import HOST_NAMES, PUBLIC_URL, TRUSTED_PROXIES, is_trusted, served_names
from gateway.web.http.server import BOUNDS, assembled
from gateway.web.local_commands import LocalCommands
from gateway.web.openapi import Description
from gateway.web.relayed.ids import RelayedIds
from gateway.web.relayed.relay import Relay, Relayed
from gateway.web.status.live import Live


class Interface:
    """The whole interface and the page."""

    def __init__(
        self, context: InterfaceContext, *, relay: Relay | None = None, extra_routes: Sequence[Route] = ()
    ) -> None:
        """`relay`: the relay of operations that only central answers; None for a site without central.

        `extra_routes` are further operations, each with its own rule.
        """
        self._context = context
        self._relay = relay
        self._extra_routes = extra_routes
        self._live = Live(context)

    def build(self) -> web.Application:
        """Return the application. Raises AssertionError unless each operation of the catalogue has one handler."""
        context, auth, routes = self._context, self._context.auth, tuple(self._routes())
        if Counter(route.operation for route in routes) != Counter(OPERATIONS):
            raise AssertionError("every operation of the catalogue has exactly one handler")
        admission = Admission(sessions=auth.sessions, viewers=auth.viewers, keys=auth.keys)
        proxies = context.site.api.proxies()
        places = HttpPlaces(
            Places(
                bounds=BOUNDS,
                monotonic=context.clock.monotonic,
                is_configured=is_this_machine,
                is_proxy=lambda host: (found := parsed_address(host)) is not None and is_trusted(found, proxies),
            ),
            monotonic=context.clock.monotonic,
        )
        app = assembled((*routes, *self._relayed_routes(), *self._extra_routes), admission, self._live, places)
        app.router.add_routes(LocalCommands(register=auth.register, site_file=context.site_file).routes())
        app[TRUSTED_PROXIES] = proxies
        app[HOST_NAMES] = served_names(context.site.api, machine=socket.gethostname())
        app[PUBLIC_URL] = context.site.api.public_url or ""
        app.cleanup_ctx.append(self._while_served)
        app.on_shutdown.append(self._release)
        return app

    async def _release(self, _: web.Application) -> None:
        self._context.recording.live.release()

    def _routes(self) -> Iterator[Route]:
        for family in FAMILIES:
            made = self._live if family is Live else family(self._context)
            yield from made.routes()
        yield from Description(self._context, PUBLIC).routes()

    def _relayed_routes(self) -> tuple[Route, ...]:
        auth, ids = self._context.auth, RelayedIds(references=self._context.store.references)
        return (
            *Relayed(relay=self._relay, sessions=auth.central_sessions, ids=ids).routes(),
            *ExternalSignIn(relay=self._relay, sign_in=auth.sign_in).routes(),
        )

    async def _while_served(self, _: web.Application) -> AsyncIterator[None]:
        """Run the interface's tasks while it is served: open views, session ends."""
        await self._context.auth.load()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(self._context.auth.run(), name="end-at-central"),
                group.create_task(self._context.views.run(), name="check-views"),
            )
            yield
            for task in tasks:
                task.cancel()
        await self._context.auth.central_sessions.end_all()
