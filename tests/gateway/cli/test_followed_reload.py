"""`edge-gateway reload` follows a change on trial at a far end that serves its interface anew, or starts again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from click.testing import Result
from typer import Typer
from typer.testing import CliRunner
from waiting import until

from gateway.cli.reload import reload
from gateway.runtime.unix_sockets import INTERFACE_SOCKET, listen
from gateway.web.register.changes import RELOAD_PATH, TRIAL_PATH, Answer, SiteChange

RENAMED = SiteChange(
    part="lane",
    id="entry",
    name="Entry",
    how="changed",
    keys=("name",),
    devices=(),
    lanes=(),
    text="lane entry changed",
)
ON_TRIAL = Answer(changes=(RENAMED,), on_trial=True, run="first")
app = Typer()
app.command()(reload)


@asynccontextmanager
async def far_end(folder: Path, trial: Callable[[], Answer]) -> AsyncIterator[list[str]]:
    """Answer on the local socket of a data folder; yields the paths that were asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        told = ON_TRIAL if request.path == RELOAD_PATH else trial()
        return web.Response(body=told.model_dump_json(), content_type="application/json")

    served = web.Application()
    served.router.add_routes([web.post(RELOAD_PATH, answer), web.post(TRIAL_PATH, answer)])
    runner = web.AppRunner(served, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, listen(folder / "run" / INTERFACE_SOCKET)).start()
    try:
        yield asked
    finally:
        await runner.cleanup()
        (folder / "run" / INTERFACE_SOCKET).unlink()


async def typed(folder: Path) -> Result:
    """Type the command."""
    return await asyncio.to_thread(CliRunner().invoke, app, ["--data", str(folder)])


async def test_a_trial_is_followed_over_an_interface_that_is_served_anew(tmp_path):
    async with asyncio.TaskGroup() as group:
        async with far_end(tmp_path, lambda: Answer(on_trial=True, run="first")) as asked:
            command = group.create_task(typed(tmp_path))
            await until(lambda: TRIAL_PATH in asked)
        await asyncio.sleep(0.6)  # the command asks meanwhile, and nobody is there
        async with far_end(tmp_path, lambda: Answer(confirmed=True, why="all lanes work", run="first")):
            done = await command
    assert (done.exit_code, done.output) == (0, "lane entry changed\nin force: all lanes work\n")


async def test_a_gateway_that_started_again_knows_nothing_of_the_trial(tmp_path):
    """Its last change on trial is none, which counts as confirmed; but the file was taken back at its start."""
    async with far_end(tmp_path, lambda: Answer(confirmed=True, run="second")):
        done = await typed(tmp_path)
    assert str(done.exception) == "the gateway did not answer; look in its log what became of it"
    assert "in force" not in done.output
