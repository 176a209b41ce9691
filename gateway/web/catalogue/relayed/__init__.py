"""What central answers, through this gateway, with the caller's own session there; a file per family."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation
from gateway.web.catalogue.relayed import access, banking, discovery, office, snow, trade, until_bound, work

OPERATIONS: tuple[Operation, ...] = (
    *discovery.OPERATIONS,
    *access.OPERATIONS,
    *snow.OPERATIONS,
    *trade.OPERATIONS,
    *banking.OPERATIONS,
    *work.OPERATIONS,
    *office.OPERATIONS,
)
"""What central always answers."""

UNTIL_BOUND: tuple[Operation, ...] = until_bound.OPERATIONS
"""What central answers as long as the gateway does not."""
