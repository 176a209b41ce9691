"""The reports of a camera worker that hangs, and of one that is only slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gateway.domain.footage import WorkerBeat
from gateway.recording.worker_client import WorkerClient, WorkerSilent

HUNG_SECONDS = 0.2
Talk = Callable[[web.StreamResponse], Awaitable[None]]


@asynccontextmanager
async def worker(folder, talk: Talk, *, greets: bool = True) -> AsyncIterator[WorkerClient]:
    """A client of a worker that answers the question for reports, unless it does not greet, and then talks."""
    over = asyncio.Event()

    async def reports(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if greets:
            await response.prepare(request)
            await talk(response)
        await over.wait()
        return response

    application = web.Application()
    application.router.add_get("/reports", reports)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "worker.sock")).start()
    try:
        async with WorkerClient(socket=folder / "worker.sock", hung_seconds=HUNG_SECONDS) as client:
            yield client
    finally:
        over.set()
        await runner.cleanup()


async def beats(response: web.StreamResponse, count: int) -> None:
    for _ in range(count):
        await response.write(WorkerBeat(cameras=1).model_dump_json().encode() + b"\n")
        await asyncio.sleep(HUNG_SECONDS / 4)  # the pace of its heart


@pytest.mark.parametrize(("count", "greets"), [(0, True), (3, True), (0, False)])
async def test_a_worker_that_says_nothing_any_more_hangs(tmp_path, count, greets):
    async with worker(tmp_path, lambda response: beats(response, count), greets=greets) as client:
        reports = client.reports()
        for _ in range(count):
            assert isinstance(await anext(reports), WorkerBeat)
        with pytest.raises(WorkerSilent, match=r"no sign of life for 0\.2 s"):
            await asyncio.wait_for(anext(reports), 10)


async def test_a_worker_that_beats_is_followed_for_as_long_as_it_does(tmp_path):
    """Its beats come for twice as long as a silence may last."""
    async with worker(tmp_path, lambda response: beats(response, 8)) as client:
        reports = client.reports()
        for _ in range(8):
            assert isinstance(await anext(reports), WorkerBeat)
        await reports.aclose()
