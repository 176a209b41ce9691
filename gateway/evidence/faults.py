"""Faults of evidence."""

from __future__ import annotations

from gateway.domain.errors import GatewayError


class EvidenceBroken(GatewayError):
    """It does not prove what it says; `faults` are sentences."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
