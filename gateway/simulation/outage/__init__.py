"""A site that is without central for days, on virtual time: traffic, people, power cuts, and the way back in step.

Everything of the gateway that speaks with central is real, and so is the HTTP between them; it goes through memory.
"""

from gateway.simulation.outage.plan import OutagePlan
from gateway.simulation.outage.simulate import OutageReport, simulate_outage

__all__ = ["OutagePlan", "OutageReport", "simulate_outage"]
