"""The header `Sent-At`, by which a command that comes too late is refused.

A network may hold a request back for long after its sender has given it up. A gate must not move then.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.runtime.clock import Clock
from gateway.web.http.dates import from_micros
from gateway.web.http.errors import RequestRefused

HEADER = "Sent-At"
LATEST_SECONDS = 5


def refuse_late(request: web.Request, clock: Clock) -> None:
    """Refuse a command whose `Sent-At`, by the gateway's clock, is more than five seconds off; without one, do nothing.

    Raises RequestRefused: 409 for a late command, 400 for a header that is no moment.
    """
    sent = request.headers.get(HEADER)
    if sent is None:
        return
    try:
        at = from_micros(sent, ZoneInfo("UTC"))
    except (ValueError, OverflowError) as error:
        raise RequestRefused(400, f"{HEADER}: {error}") from error
    if abs(clock.wall().micros - at) > LATEST_SECONDS * 1_000_000:
        raise RequestRefused(
            409, "The command came too late, so it was not carried out. Look at the gate, and try again."
        )
