"""Whether the gateway lives and is ready. The interface does not say who may ask; probes have no session."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, Operation, Rule
from gateway.web.shapes.health import LiveAnswer, ReadyAnswer, RootAnswer

_PROBE = Rule(session=False, whole=False, confirmed=False)

ROOT = Operation("GET", "/", OPEN, head=True, purpose="Whether the server process runs", answer=RootAnswer)
LIVE = Operation("GET", "/health/live", _PROBE, head=True, purpose="Liveness probe", answer=LiveAnswer)
READY = Operation("GET", "/health/ready", _PROBE, head=True, purpose="Readiness probe", answer=ReadyAnswer)

OPERATIONS: tuple[Operation, ...] = (
    ROOT,
    LIVE,
    READY,
)
