"""The error for a package that proves nothing."""

from __future__ import annotations

from gateway.domain.errors import GatewayError


class ProofBroken(GatewayError):
    """A package that does not prove its contents; `faults` are sentences."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
