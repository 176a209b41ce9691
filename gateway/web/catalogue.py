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
from gateway.web.operations.camera_events.handlers import CameraEventsFamily
from gateway.web.operations.cameras.handlers import Cameras
from gateway.web.operations.cameras.whep import Whep
from gateway.web.operations.cards.handlers import CardsFamily
from gateway.web.operations.description import Description
from gateway.web.operations.devices import Devices
from gateway.web.operations.entries.handlers import EntriesFamily
from gateway.web.operations.events import EventsFamily
from gateway.web.operations.evidence import EvidenceFamily
from gateway.web.operations.health import Health
from gateway.web.operations.metrics.handler import Metrics
from gateway.web.operations.session import Auth
from gateway.web.status.card_desk import StatusCards
from gateway.web.status.commissioning import StatusCommissioning
from gateway.web.status.event_history import EventHistory
from gateway.web.status.fleet import StatusFleet
from gateway.web.status.gate_travels import StatusTravels
from gateway.web.status.incidents import StatusIncidents
from gateway.web.status.lane_view import StatusLane
from gateway.web.status.lines import StatusLines
from gateway.web.status.live import Live
from gateway.web.status.orders import StatusOrders
from gateway.web.status.outbox import StatusOutbox
from gateway.web.status.page import StatusPage
from gateway.web.status.problems import StatusProblems
from gateway.web.status.proof_packages import StatusProofs
from gateway.web.status.settings import StatusSettings
from gateway.web.status.settings_accounts import StatusAccounts
from gateway.web.status.support import StatusSupport
from gateway.web.status.sync import StatusSync
from gateway.web.status.trends import StatusTrends
from gateway.web.status.webhooks import StatusWebhooks

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
