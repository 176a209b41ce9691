"""Whether the gateway lives and is ready."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, Operation

ROOT = Operation("GET", "/", OPEN, head=True)
LIVE = Operation("GET", "/health/live", OPEN, head=True)
READY = Operation("GET", "/health/ready", OPEN, head=True)

OPERATIONS: tuple[Operation, ...] = (
    ROOT,
    LIVE,
    READY,
)
