"""The socket for requests to a running gateway's register: one line of JSON as request, one as answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from pydantic import ValidationError

from gateway.domain.errors import GatewayError, GatewayUnreachable
from gateway.runtime.unix_sockets import connect, is_own_process, listen
from gateway.site.running_site import Outcome, Reloaded, RunningSite
from gateway.web.register.changes import ASKED, Answer, Asked, ReaderUnseen, Reload, SiteChange
from gateway.web.register.register import Register

log = structlog.get_logger(__name__)

_NAME = "users.sock"
_SECONDS = 10.0
_LONGEST_RELOAD = 720.0
_LINE = 256 * 1024
_CONNECT_SECONDS = 2.0
"""Time-out to connect. It is reached only when many other commands connect at the same moment."""


class NobodyThere(GatewayUnreachable):
    """No gateway listens in this data folder."""


@asynccontextmanager
async def listening(
    register: Register, *, run_folder: Path, site_file: RunningSite | None = None
) -> AsyncIterator[None]:
    """Serve the socket for as long as the context lasts. `site_file`: None for a gateway that cannot read it again.

    If the socket cannot be made, that is logged, and the gateway runs without it.
    """
    try:
        end = listen(run_folder / _NAME)
    except OSError as error:
        log.warning("register_not_served", error=error.strerror or str(error))
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_own_process(writer.get_extra_info("socket")):  # such as a camera worker that was taken over
            log.warning("register_refused_own_process")
            writer.close()
            return
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # the command has gone, or its line is too long
            async with asyncio.timeout(_SECONDS):
                line = await reader.readline()
            async with asyncio.timeout(_LONGEST_RELOAD):  # longest: a new site file on trial that is taken back
                said = await _answer(register, site_file, line)
            async with asyncio.timeout(_SECONDS):
                writer.write(said.model_dump_json().encode() + b"\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, sock=end, limit=_LINE)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            (run_folder / _NAME).unlink(missing_ok=True)


async def ask(change: Asked, *, run_folder: Path) -> Answer:
    """Have the gateway that runs on this data folder make a change.

    Raises NobodyThere when no gateway runs, GatewayUnreachable when the socket belongs to another user, and
    GatewayError when the gateway does not answer in time or in a known form.
    """
    try:
        async with asyncio.timeout(_LONGEST_RELOAD if isinstance(change, Reload) else _SECONDS):
            reader, writer = await asyncio.open_unix_connection(
                sock=connect(run_folder / _NAME, within=_CONNECT_SECONDS), limit=_LINE
            )
            try:
                writer.write(change.model_dump_json().encode() + b"\n")
                await writer.drain()
                line = await reader.readline()
            finally:
                writer.close()
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        raise NobodyThere(f"no gateway listens in {run_folder}") from error
    except PermissionError as error:
        raise GatewayUnreachable(f"{run_folder / _NAME} belongs to another user; try it with sudo") from error
    except (TimeoutError, OSError) as error:
        where = "in its log" if isinstance(change, Reload) else "with `users list`"
        raise GatewayError(f"the gateway did not answer; look {where} what became of it") from error
    try:
        return Answer.model_validate_json(line)
    except ValidationError as error:
        raise GatewayError("the gateway's answer is of another release; restart it") from error


async def _answer(register: Register, site_file: RunningSite | None, line: bytes) -> Answer:
    try:
        change = ASKED.validate_json(line)
    except ValidationError:
        return Answer(error="the gateway does not know this change; it runs another release")
    if not isinstance(change, Reload):
        return await register.ask(change)
    if site_file is None:
        return Answer(error="this gateway does not read its site file again")
    if change.dry_run:
        return _of_site_file(await site_file.compare(), Outcome(confirmed=False, why=""))
    done = await site_file.reload(by="command", wait=change.wait, lanes_are_free=change.now)
    end = await site_file.outcome() if done.on_trial else Outcome(confirmed=done.is_taken, why="")
    return _of_site_file(done, end)


def _of_site_file(found: Reloaded, end: Outcome) -> Answer:
    changes = tuple(
        SiteChange(
            part=one.part,
            id=one.id,
            name=one.name,
            how=one.how,
            keys=one.keys,
            devices=one.devices,
            lanes=one.lanes,
            text=one.sentence(),
        )
        for one in found.changes
    )
    unseen = tuple(
        ReaderUnseen(device_id=one.device_id, name=one.name, proof=one.proof.value, text=one.sentence())
        for one in end.unseen
    )
    return Answer(
        faults=found.faults,
        changes=changes,
        refused=found.refused,
        confirmed=end.confirmed,
        why=end.why,
        unseen=unseen,
    )
