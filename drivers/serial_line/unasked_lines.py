"""A line that is kept open to a device that sends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from drivers.contract import DeviceConnected, LinkError, MonotonicSeconds, Reports
from drivers.link import Arrival, Connection, LinkSpec, open_link, reconnect_wait
from drivers.losses import Loss

_LONGEST_WAIT = 2.0
_STEADY_SECONDS = 5.0
SETTLED_SECONDS = 0.2
"""Seconds after a line was opened in which bytes may be the rest of something that began before.

A port gives what arrives from the moment of its opening on, in the middle of a line too, and a serial server what it
had kept. What is sent by itself is sent in one go, so that after so much silence only a begin can follow.
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

    Such a device counts as connected while its line is open, from the first silence of `SETTLED_SECONDS` on. `hear` is
    also given what came before that, if anything did.
    """
    loss = Loss(device_id=device_id)
    failures = 0
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
            failures = 1 if monotonic() - opened_at > _STEADY_SECONDS else failures + 1
            for report in loss.lost(str(error), at=monotonic()):
                reports(report)
        await asyncio.sleep(reconnect_wait(failures, longest=_LONGEST_WAIT))


async def next_arrival(connection: Connection, *, within: float | None) -> Arrival | None:
    """Wait for the next bytes; return None when none come within so many seconds. None waits for ever."""
    try:
        async with asyncio.timeout(within):
            return await connection.read()
    except TimeoutError:
        return None
