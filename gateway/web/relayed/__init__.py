"""Operations that central answers with the caller's own session there: data, a file per family."""

from __future__ import annotations

from gateway.web.operation import Operation
from gateway.web.relayed import access, banking, discovery, office, snow, trade, work

OPERATIONS: tuple[Operation, ...] = (
    *discovery.OPERATIONS,
    *access.OPERATIONS,
    *snow.OPERATIONS,
    *trade.OPERATIONS,
    *banking.OPERATIONS,
    *work.OPERATIONS,
    *office.OPERATIONS,
)
"""All of them."""
