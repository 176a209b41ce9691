"""The one catalogue of operations, a file per family.

Handlers are bound to it where the application is built; an operation without a handler, or with two, does not start.
"""

from __future__ import annotations

from gateway.web.catalogue import (
    access,
    camera_events,
    cameras,
    description,
    devices,
    entries,
    events,
    health,
    legacy,
    page,
    relayed,
    session,
)
from gateway.web.catalogue.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *health.OPERATIONS,
    *description.OPERATIONS,
    *session.OPERATIONS,
    *devices.OPERATIONS,
    *access.OPERATIONS,
    *events.OPERATIONS,
    *entries.OPERATIONS,
    *cameras.OPERATIONS,
    *camera_events.OPERATIONS,
    *legacy.OPERATIONS,
    *page.OPERATIONS,
)
"""What this gateway itself serves, always."""

RELAYED: tuple[Operation, ...] = relayed.OPERATIONS
"""What central answers through this gateway."""

PUBLIC: tuple[Operation, ...] = (
    *(item for item in OPERATIONS if item not in page.OPERATIONS and item not in description.OPERATIONS),
    *RELAYED,
)
"""The interface for everybody: all but what the site's own page asks for."""
