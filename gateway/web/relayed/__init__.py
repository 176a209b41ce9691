"""Declarations of the operations that central answers, by the caller's own session at central: a module per family."""

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
"""Every operation that central answers."""
