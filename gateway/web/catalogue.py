"""The catalogue of all operations, collected from the families.

The application does not start unless it serves each of these families exactly once (`Interface.build`).
"""

from __future__ import annotations

from gateway.web import relayed
from gateway.web.families import Family, operations_of
from gateway.web.legacy.access import LegacyAccess
from gateway.web.legacy.devices import LegacyDevices
from gateway.web.legacy.video import LegacyVideo
from gateway.web.legacy.webhooks import LegacyWebhooks
from gateway.web.openapi import Description
from gateway.web.operations.camera_events import CameraEventsFamily
from gateway.web.operations.cameras import Cameras
from gateway.web.operations.cards import CardsFamily
from gateway.web.operations.devices import Devices
from gateway.web.operations.entries import EntriesFamily
from gateway.web.operations.events import EventsFamily
from gateway.web.operations.evidence import EvidenceFamily
from gateway.web.operations.health import Health
from gateway.web.operations.metrics import Metrics
from gateway.web.operations.session import Auth
from gateway.web.operations.whep import Whep
from gateway.web.status.card_desk import StatusCards
from gateway.web.status.commissioning import StatusCommissioning
from gateway.web.status.downloads import StatusIncidents, StatusProofs, StatusSupport
from gateway.web.status.event_history import EventHistory
from gateway.web.status.lane_view import StatusLane
from gateway.web.status.lines import StatusLines
from gateway.web.status.lines_up import StatusFleet, StatusWebhooks
from gateway.web.status.live import Live
from gateway.web.status.orders import StatusOrders, StatusProblems
from gateway.web.status.outbox import StatusOutbox, StatusSync
from gateway.web.status.page_files import StatusPage
from gateway.web.status.settings import StatusAccounts, StatusSettings
from gateway.web.status.trends import StatusTravels, StatusTrends

_LEGACY: tuple[type[Family], ...] = (LegacyAccess, LegacyDevices, LegacyVideo, LegacyWebhooks)
_PAGE: tuple[type[Family], ...] = (
    StatusPage,
    Live,
    EventHistory,
    StatusIncidents,
    StatusTravels,
    StatusLane,
    StatusCards,
    StatusLines,
    StatusFleet,
    StatusProblems,
    StatusOrders,
    StatusProofs,
    StatusTrends,
    StatusSupport,
    StatusWebhooks,
    StatusOutbox,
    StatusSync,
    StatusCommissioning,
    StatusSettings,
    StatusAccounts,
)
_PUBLIC: tuple[type[Family], ...] = (
    Health,
    Auth,
    Devices,
    CardsFamily,
    EventsFamily,
    EntriesFamily,
    Cameras,
    Whep,
    CameraEventsFamily,
    EvidenceFamily,
)
FAMILIES = (*_PUBLIC, *_LEGACY, Metrics, *_PAGE)
"""The families that the application builds. The description of the interface is built apart, from the catalogue."""
LEGACY = operations_of(*_LEGACY)
"""The family under `/api/v1`, for programs with an API key."""
PAGE = operations_of(*_PAGE)
"""Operations of the site's own page; the interface has none of these."""
RELAYED = relayed.OPERATIONS
"""The operations that central answers through this gateway."""
_INTERFACE = (*operations_of(*_PUBLIC), *LEGACY)
OPERATIONS = (*_INTERFACE, *operations_of(Description, Metrics), *PAGE)
"""The operations that this gateway answers itself, with or without central."""
PUBLIC = (*_INTERFACE, *RELAYED)
"""The published interface: all operations but those of the site's own page, metrics and the description itself."""
