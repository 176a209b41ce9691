"""Setting of a reader's own key, once.

A new reader, or one in its install mode, opens a secure channel with the default key that every reader knows. The new
key is set over that channel, and anyone who listens on the cable meanwhile can learn it. So a person on site does this,
and never the gateway by itself.
"""

from __future__ import annotations

import asyncio
import contextlib

from drivers.contract import LinkError
from drivers.link import LinkSpec
from drivers.osdp.line import OsdpLine
from drivers.osdp.messages import Connected, Happening, Lost

_WITHIN_SECONDS = 12.0


async def set_key(*, spec: LinkSpec, address: int, key: bytes) -> None:
    """Set the reader's key (16 bytes), and check that the reader then opens a secure channel with it.

    A reader that has the key already keeps it, so an interrupted run can be repeated. Nothing else may use the line
    meanwhile. Raises LinkError with the reason when the reader does not take the key.
    """
    for install in (True, False):
        line = OsdpLine(name="provisioning", spec=spec, keys={address: key}, install=install)
        state = await _reader_state(line, address)
        if isinstance(state, Lost):
            raise LinkError(state.reason)


async def _reader_state(line: OsdpLine, address: int) -> Connected | Lost:
    """Wait for the line's first report of the reader, at most 12 s; Lost when none came."""
    found: asyncio.Future[Connected | Lost] = asyncio.get_running_loop().create_future()

    def take(happening: Happening) -> None:
        if isinstance(happening, Connected | Lost) and not found.done():
            found.set_result(happening)

    with line.attached(address, take):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(line.run(), name="osdp provisioning")
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_WITHIN_SECONDS):
                        return await found
            finally:
                running.cancel()
    return Lost(address=address, reason="nothing was heard of it")
