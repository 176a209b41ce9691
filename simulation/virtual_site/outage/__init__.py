"""A site without central for days, on virtual time: traffic, people, power cuts, and the synchronisation afterwards.

Everything of the gateway that speaks with central is real, and so is the HTTP between them; it goes through memory.
"""

from simulation.virtual_site.outage.holdings import site_holds
from simulation.virtual_site.outage.people import Promised
from simulation.virtual_site.outage.plan import BAD_LINE, OutagePlan
from simulation.virtual_site.outage.reconcile import Acknowledged, CentralHolds, SiteHolds, faults_between
from simulation.virtual_site.outage.report import OutageReport, show_outage
from simulation.virtual_site.outage.simulate import simulate_outage

__all__ = [
    "BAD_LINE",
    "Acknowledged",
    "CentralHolds",
    "OutagePlan",
    "OutageReport",
    "Promised",
    "SiteHolds",
    "faults_between",
    "show_outage",
    "simulate_outage",
    "site_holds",
]
