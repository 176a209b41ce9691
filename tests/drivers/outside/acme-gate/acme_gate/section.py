"""The gate's section in the site file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from drivers.device import Abilities, FindProfile, GateDevice, LineKind, Surroundings
from drivers.settings import SecretName

if TYPE_CHECKING:
    from acme_gate.gate import AcmeGate

INPUTS = ("arming_loop", "closing_loop", "photocell")


class AcmeGateDevice(GateDevice):
    """An ACME gate with its loops, commanded with JSON over HTTP."""

    driver: Literal["acme-gate"]
    token: SecretName

    has_points: ClassVar[bool] = True

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("http",)

    def abilities(self, find_profile: FindProfile) -> Abilities:  # it has no profile
        """Return the inputs; the gate has all commands, and tells its position."""
        return Abilities(points={name: name for name in INPUTS})

    def build(self, parts: Surroundings) -> AcmeGate:
        """Build the driver."""
        from acme_gate.gate import AcmeGate  # only a site with one loads it

        return AcmeGate(
            device_id=self.id, url=parts.spec.url, token=parts.secret(self.token), monotonic=parts.monotonic
        )
