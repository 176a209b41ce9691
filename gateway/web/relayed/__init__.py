"""The operations that central answers, by the caller's own session at central: `operations.toml` has them."""

from __future__ import annotations

from gateway.web.relayed.rows import operations

OPERATIONS = operations()
"""Every operation that central answers."""
