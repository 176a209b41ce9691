"""The interface's own description."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, Operation

OPENAPI = Operation("GET", "/openapi.json", OPEN, head=True, purpose="This interface as OpenAPI 3.1")

OPERATIONS: tuple[Operation, ...] = (OPENAPI,)
