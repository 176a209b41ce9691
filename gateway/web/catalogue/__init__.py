"""The one catalogue of operations, a file per family.

Handlers are bound to it where the application is built; an operation without a handler, or with two, does not start.
"""

from __future__ import annotations

from gateway.web.catalogue import camera_events, cameras, devices, entries, events, health, page, relayed, session
from gateway.web.catalogue.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *health.OPERATIONS,
    *session.OPERATIONS,
    *devices.OPERATIONS,
    *events.OPERATIONS,
    *entries.OPERATIONS,
    *cameras.OPERATIONS,
    *camera_events.OPERATIONS,
    *page.OPERATIONS,
)
"""What this gateway itself serves, always."""

_OWN = {(item.method, item.path) for item in OPERATIONS}

RELAYED: tuple[Operation, ...] = (
    *relayed.OPERATIONS,
    *(item for item in relayed.UNTIL_BOUND if (item.method, item.path) not in _OWN),
)
"""What central answers through this gateway."""
