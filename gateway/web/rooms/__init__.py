"""What the web layer knows of the rooms beside it: their narrow faces, and small values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.web.rooms.central import Central, CentralAccounts, CentralView, CentralWrites, Relay
from gateway.web.rooms.desks import Keys, KnownKey, OutboxDesk, SiteFile, WebhookDesk
from gateway.web.rooms.footage import CameraView, ExhibitShelf, Incoming, LiveFootage, Recording, StorageView, Viewing

__all__ = [
    "CameraView",
    "Central",
    "CentralAccounts",
    "CentralView",
    "CentralWrites",
    "DemoCard",
    "ExhibitShelf",
    "Incoming",
    "Keys",
    "KnownKey",
    "LiveFootage",
    "OutboxDesk",
    "Readiness",
    "Recording",
    "Relay",
    "SiteFile",
    "StorageView",
    "Viewing",
    "WebhookDesk",
]

Readiness = Callable[[], tuple[str, ...]]
"""What is not ready, one sentence each; empty when the gateway is ready."""


@dataclass(frozen=True, slots=True)
class DemoCard:
    """A card that the demo's page can present: what the reader would send, and what to call it."""

    card: str
    label: str
