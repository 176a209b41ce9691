"""Serves the interface over a store, or over nothing the same bytes by a bare aiohttp handler; for `test_event_list`.

`python event_house.py real FOLDER` or `bare FILE` (the body). Says its port and a session token on one line, and serves
until its input ends. With `watched` it then says as JSON which callbacks of the loop took longer than 5 ms, the time
that other programs had the processor aside; watching costs time itself.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import nullcontext
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web
from loop_watch import Watched, watch_callbacks

from gateway.problems.problem import Verdict
from gateway.runtime.clock import SystemClock
from gateway.site.models import Site
from gateway.store import Session, Store
from gateway.web.app import Interface
from gateway.web.auth.accounts import hash_password
from gateway.web.context import InterfaceContext
from gateway.web.http.server import serve

TOKEN = "t" * 43
LIMIT = 0.005
SITE = Site.model_validate({"site": {"name": "North"}})


async def real(folder: Path) -> None:
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    clock = SystemClock()
    now = clock.wall().micros
    if not await store.accounts.all():
        await store.accounts.add("a", password_hash=hash_password("a"), role="administrator", now=now)
    await store.sessions.add(TOKEN, Session("a", now, now, now + 3_600_000_000))
    parts: dict[str, Any] = {field.name: _Unused() for field in fields(InterfaceContext) if field.default is MISSING}
    parts |= {
        "site": SITE,
        "store": store,
        "central": None,
        "clock": clock,
        "guessable": {},
        "data": folder,
        "verdict": lambda: Verdict((), lanes=0),
    }
    app = Interface(InterfaceContext(**parts)).build()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.get_running_loop().create_task(
        serve(
            app,
            host="127.0.0.1",
            port=0,
            started=port.set_result,
            failed=lambda why: port.set_exception(AssertionError(why)),
            run_folder=folder / "run",
        )
    )
    told = await port
    await until_told(told)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await store.sessions.remove(TOKEN)
    await store.close()


class _Unused:
    """A part of the gateway that the event list does not ask."""

    viewing = evidence_files = figures = None

    @property
    def live(self) -> _Unused:
        return self

    def release(self) -> None:
        """Let go of nobody: nobody watches."""


async def bare(body: bytes) -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/event/list", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await until_told(runner.addresses[0][1])
    await runner.cleanup()


async def until_told(port: int) -> None:
    print(port, TOKEN, flush=True)
    with watch_callbacks(limit=LIMIT) if "watched" in sys.argv else nullcontext(Watched(LIMIT)) as watched:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps([[held.seconds, held.waited, held.what] for held in watched.too_long]), flush=True)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed is for the benchmark
    kind, given = sys.argv[1], Path(sys.argv[2])
    asyncio.run(real(given) if kind == "real" else bare(given.read_bytes()))
