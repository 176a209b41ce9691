"""Lines to devices that send by themselves: each is kept open, and read as long as it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from drivers.backoff import Reconnects
from drivers.contract import DeviceConnected, LinkError, MonotonicSeconds, Reports
from drivers.link import Arrival, Connection, LinkSpec, open_link
from drivers.losses import Loss

_LONGEST_WAIT = 2.0
_STEADY_SECONDS = 5.0
SETTLED_SECONDS = 0.2
"""Seconds after a line was opened in which bytes may be the rest of a message that began before.

A port that is opened in the middle of a message gives its rest, and a serial server gives what it had kept. Such
devices send each message in one go, so after this much silence only the begin of a message can follow.
"""


async def listen(
    spec: LinkSpec,
    hear: Callable[[Connection, Arrival | None], Awaitable[None]],
    *,
    device_id: int,
    reports: Reports,
    monotonic: Callable[[], MonotonicSeconds],
) -> None:
    """Keep the line open until cancelled, and hand each connection to `hear`, which reads until LinkError.

    The device counts as connected while its line is open, from the first bytes or `SETTLED_SECONDS` after the opening,
    whichever is first. `hear` is given those bytes too, which may be the rest of a message; None when none came.
    """
    loss = Loss(device_id=device_id)
    reconnects = Reconnects(longest=_LONGEST_WAIT, steady=_STEADY_SECONDS)
    while True:
        opened_at = float("inf")
        try:
            connection = await open_link(spec, monotonic=monotonic)
            try:
                opened_at = monotonic()
                unsettled = await next_arrival(connection, within=SETTLED_SECONDS)
                reports(DeviceConnected(device_id, monotonic()))
                loss.over()
                await hear(connection, unsettled)
            finally:
                await connection.close()
        except LinkError as error:
            reconnects.failed(lasted=monotonic() - opened_at)
            for report in loss.lost(str(error), at=monotonic()):
                reports(report)
        await asyncio.sleep(reconnects.wait())


async def next_arrival(connection: Connection, *, within: float | None) -> Arrival | None:
    """Wait for the next bytes; return None when none come within `within` seconds. `within` None waits for ever."""
    try:
        async with asyncio.timeout(within):
            return await connection.read()
    except TimeoutError:
        return None
