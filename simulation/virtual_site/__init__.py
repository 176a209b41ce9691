"""A whole site on a virtual clock: the real lanes, runners, decisions, store and outbox against simulated far ends.

Faults are injected, and the promises are checked at every step. All chance comes from one seed: the same seed gives the
same run. No socket is opened and no thread is started; the store's files are real files.
"""

from simulation.virtual_site.plan import Plan
from simulation.virtual_site.report import Report
from simulation.virtual_site.simulate import simulate
from simulation.virtual_site.world import Parts

__all__ = ["Parts", "Plan", "Report", "simulate"]
