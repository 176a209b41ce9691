"""Starts the demo: the simulated field, a central service, and the real gateway beside them."""

from __future__ import annotations

from pathlib import Path

from gateway.domain.errors import ConfigError


def launch(*, data: Path | None, port: int, central_port: int, traffic: bool) -> int:
    """Run the demo until interrupted and return its exit status. Without `data` a temporary folder is used."""
    raise ConfigError(
        f"this build has no simulated field (asked for: port {port}, central port {central_port}, "
        f"{'with' if traffic else 'without'} traffic, data in {data or 'a temporary folder'})"
    )
