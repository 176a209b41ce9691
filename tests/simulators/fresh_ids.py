"""A site that has just heard from central how far its ids have come, so that it does not ask before it sends."""

from __future__ import annotations

from gateway.central.client.client import CentralClient
from gateway.central.push.newest_ids import NewestIds
from gateway.runtime.clock import SystemClock


def fresh_ids(client: CentralClient) -> NewestIds:
    """One that need not ask for some minutes."""
    ids = NewestIds(client=client, clock=SystemClock())
    ids.on_answer("camera_event")
    ids.on_answer("entry")
    return ids
