"""The catalogue of all operations, collected from the families.

Each operation must have exactly one handler; otherwise the application does not start (`Interface.build`).
"""

from __future__ import annotations

from types import ModuleType

from gateway.web import relayed
from gateway.web.legacy import access, devices, video, webhooks
from gateway.web.operation import Operation
from gateway.web.operations import description, events, evidence, health, session
from gateway.web.operations import devices as gates
from gateway.web.operations.camera_events import operations as camera_events
from gateway.web.operations.cameras import operations as cameras
from gateway.web.operations.cards import operations as cards
from gateway.web.operations.entries import operations as entries
from gateway.web.operations.metrics import handler as metrics
from gateway.web.status import (
    card_desk,
    commissioning,
    event_history,
    fleet,
    gate_travels,
    incidents,
    lane_view,
    lines,
    live,
    orders,
    outbox,
    page,
    problems,
    proof_packages,
    settings,
    settings_accounts,
    support,
    sync,
    trends,
)
from gateway.web.status import webhooks as receivers


def _operations(*families: ModuleType) -> tuple[Operation, ...]:
    """Return every operation that these modules define, in their order."""
    found = (item for family in families for item in vars(family).values() if isinstance(item, Operation))
    return tuple(dict.fromkeys(found))


LEGACY = _operations(access, devices, video, webhooks)
"""The family under `/api/v1`, for programs with an API key."""
PAGE = _operations(
    page,
    live,
    event_history,
    incidents,
    gate_travels,
    lane_view,
    card_desk,
    lines,
    fleet,
    problems,
    orders,
    proof_packages,
    trends,
    support,
    receivers,
    outbox,
    sync,
    commissioning,
    settings,
    settings_accounts,
)
"""Operations of the site's own page; the interface has none of these."""
RELAYED = relayed.OPERATIONS
"""The operations that central answers through this gateway."""
_INTERFACE = (
    *_operations(health, session, gates, cards, events, entries, cameras, camera_events, evidence),
    *LEGACY,
)
OPERATIONS = tuple(dict.fromkeys((*_INTERFACE, *_operations(description, metrics), *PAGE)))
"""The operations that this gateway answers itself, with or without central."""
PUBLIC = (*(item for item in _INTERFACE if item not in PAGE), *RELAYED)
"""The published interface: all operations but those of the site's own page, metrics and the description itself."""
