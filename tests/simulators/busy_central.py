"""A far-end central built from the interface document alone, which gains records while it is asked.

It takes only the fields that the document names, knows no idempotency keys, caps pages of camera events at 500, lists
the newest records first (or the oldest, on request), and belongs to many sites: other sites' records come at a steady
rate, those of the time when this site could not reach it included.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from aiohttp import web

_PAGES = frozenset({"page", "page_limit"})
_LISTS = {
    "/v1/camera/event/list": ("camera_event", "events", _PAGES),
    "/v1/entry/list": ("entry", "entries", _PAGES),
    "/v1/access/list": ("access_card", "access_cards", _PAGES | {"search"}),
    "/v1/device/list": ("device", "devices", _PAGES | {"search", "cursor_id"}),
    "/v1/camera/list": ("camera", "cameras", frozenset()),
}
_CREATES = {
    "/v1/camera/event": ("camera_event", "event"),
    "/v1/entry": ("entry", "entry"),
    "/v1/access": ("access_card", "access_card"),
    "/v1/device": ("device", "device"),
    "/v1/camera": ("camera", "camera"),
}
_GAINS = frozenset({"camera_event", "entry"})


@dataclass
class BusyCentral:
    """A busy central: its records, and the requests to it.

    Attributes:
        records: by kind, the oldest first. A date (seconds) stands for another site's record until somebody reads it.
        gained_per_second: other sites' records, of each kind that sites make all day.
        lose: what becomes of the next creates: "" answered, "answer" carried out and cut off, "request" cut off.
        oldest_first: in which order lists come.
        cap: the most records of a page.
        requests: how many came, by method and path, logins left out.
        bytes_in_lists: how much the answers of lists weighed.
    """

    seconds: Callable[[], float]
    gained_per_second: float = 4.0
    lose: str = ""
    oldest_first: bool = False
    cap: int = 500
    records: dict[str, list[dict[str, Any] | float]] = field(
        default_factory=lambda: {kind: [] for kind, _ in _CREATES.values()}
    )
    requests: Counter[str] = field(default_factory=Counter)
    bytes_in_lists: int = 0
    url: str = ""
    _gained_until: float = 0.0

    def start_at(self, each: int) -> None:
        """Have so many records of each kind from before."""
        self._gained_until = self.seconds()
        for records in self.records.values():
            records += [self._gained_until - each + number for number in range(each)]

    def now(self) -> datetime:
        """Its clock."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def of_site(self, kind: str, site: str) -> list[dict[str, Any]]:
        """Return what a site has made, by `source_name` or by the holder of a card or the place of a device."""
        whole = (record for record in self.records[kind] if isinstance(record, dict))
        return [record for record in whole if site in (record.get("source_name"), record.get("note"))]

    def gain(self) -> None:
        """Take in what other sites have sent since the last request."""
        due = int((self.seconds() - self._gained_until) * self.gained_per_second)
        dates = [self._gained_until + number / self.gained_per_second for number in range(due)]
        for kind in _GAINS:
            self.records[kind] += dates
        self._gained_until += due / self.gained_per_second

    def _record(self, kind: str, number: int) -> dict[str, Any]:
        record = self.records[kind][number]
        if not isinstance(record, dict):
            date_at = datetime.fromtimestamp(record, UTC).isoformat()
            record = {**self._of_another_site(kind, number, date_at), "id": number + 1}
            self.records[kind][number] = record
        return record

    def _of_another_site(self, kind: str, number: int, date_at: str) -> dict[str, Any]:
        if kind not in _GAINS:
            return {
                "access_card": {"number": f"{500_000 + number}", "status": "active"},
                "device": {"name": f"Gate {number}", "type": "barrier", "serial_number": f"S{number:06d}"},
                "camera": {"name": f"Camera {number}"},
            }[kind]
        shared = {"date_at": date_at, "source_name": f"Site {number % 50}", "source_id": 2_000_000_000 + number}
        if kind == "entry":
            return {"device_id": 700 + number % 90, "type": "entry", "plate": f"AB{number:06d}", **shared}
        return {"camera_id": 900 + number % 90, "name": "Vehicle passed", "lane": "entry", **shared}

    def add(self, kind: str, record: dict[str, Any]) -> dict[str, Any]:
        """Take a record in, under the next id."""
        made = {**record, "id": len(self.records[kind]) + 1}
        self.records[kind].append(made)
        return made

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Every operation that it has, dated by its own clock."""
        response = await self._answered(request)
        response.headers["Date"] = format_datetime(self.now(), usegmt=True)
        return response

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/":
            return web.json_response({"success": True})
        asked = await request.json() if request.can_read_body else {}
        if request.path == "/v1/auth/login":
            return web.json_response(
                {"success": True, "session": "s", "user": {"mfa_enabled": False}, "role": {}, "servers": []}
            )
        if request.path == "/v1/auth/logout":
            return web.json_response({"success": True, "user": None, "error": None})
        self.gain()
        self.requests[f"{request.method} {request.path}"] += 1
        if request.method == "POST" and request.path in _LISTS:
            return self._listed(request.path, asked)
        if request.method == "PUT" and request.path in _CREATES:
            return await self._created(request, asked)
        return web.json_response({"success": False, "error": "no such operation"}, status=404)

    def _listed(self, path: str, asked: dict[str, Any]) -> web.Response:
        kind, resource, fields = _LISTS[path]
        if unknown := asked.keys() - fields:
            return web.json_response(
                {"success": False, resource: None, "error": f"unknown fields: {', '.join(sorted(unknown))}"}, status=400
            )
        found: Sequence[int] = range(len(self.records[kind]))
        if words := asked.get("search"):
            found = [number for number in found if self._holds(kind, number, words)]
        if not self.oldest_first:
            found = found[::-1]
        page, limit = asked.get("page", 1), min(asked.get("page_limit", 25), self.cap)
        places = found if not fields else found[(page - 1) * limit : page * limit]
        shown = [self._record(kind, number) for number in places]
        response = web.json_response({"success": True, resource: shown, "count": len(found)})
        self.bytes_in_lists += len(response.body or b"")
        return response

    def _holds(self, kind: str, number: int, words: str) -> bool:
        return any(words in str(value) for name, value in self._record(kind, number).items() if name != "id")

    async def _created(self, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        kind, name = _CREATES[request.path]
        if self.lose == "request":
            await self._cut(request)
        made = self.add(kind, asked)
        if self.lose == "answer":
            await self._cut(request)
        return web.json_response({"success": True, name: made})

    async def _cut(self, request: web.Request) -> None:
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError


@asynccontextmanager
async def busy_central(central: BusyCentral) -> AsyncIterator[BusyCentral]:
    """One that is listening on a free port."""
    app = web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/{path:.*}", central.answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    central.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield central
    finally:
        await runner.cleanup()
