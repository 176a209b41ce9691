"""The error for a package that cannot be verified."""

from __future__ import annotations

from gateway.domain.errors import GatewayError


class ProofBroken(GatewayError):
    """The package does not prove its contents; `faults` has a sentence for each reason."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
