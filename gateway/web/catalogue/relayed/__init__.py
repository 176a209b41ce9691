"""What central answers, through this gateway, with the caller's own session there; a file per family."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation
from gateway.web.catalogue.relayed import access, banking, discovery, office, snow, trade, work

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
