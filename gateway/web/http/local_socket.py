"""The local Unix socket: the whole interface for root, and for members of the group that the gateway runs as."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from gateway.runtime.unix_sockets import INTERFACE_SOCKET, listen

log = structlog.get_logger(__name__)

_GROUP_TOO = 0o660


@asynccontextmanager
async def served_locally(handler: Callable[[], asyncio.Protocol], run_folder: Path) -> AsyncIterator[None]:
    """Serve on the local socket for as long as the context lasts. If the socket cannot be made, log that and go on."""
    path = run_folder / INTERFACE_SOCKET
    try:
        end = listen(path, mode=_GROUP_TOO)
    except OSError as error:
        log.warning("local_socket_not_served", error=error.strerror or str(error))
        yield
        return
    server = await asyncio.get_running_loop().create_unix_server(handler, sock=end)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
