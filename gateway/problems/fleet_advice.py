"""Advice for each kind of problem with the fleet: consequences for drivers, and steps for a technician."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

FLEET_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.FLEET_AWAY: Advice(
            "Fleet away",
            Severity.NOTICE,
            "Lanes work; events wait here, and nobody can command this gateway through the fleet.",
            (
                "Check the site's line to the internet.",
                "If that works, ask whoever runs the fleet's servers.",
                "Check the addresses in `[fleet] urls`, and that a firewall lets them through.",
            ),
        ),
        K.FLEET_REFUSES: Advice(
            "Fleet refuses",
            Severity.WARNING,
            "Lanes work; events wait here, and commands or card notices of the fleet may not arrive.",
            (
                "Read the reason above: credentials, certificate, permissions or a missing stream.",
                "Check the secret that `[fleet] credentials` names, and `[fleet] ca_file`.",
                "Ask whoever runs the fleet's servers; `edge-gateway fleet prepare` makes what a server lacks.",
            ),
        ),
    }
)
