"""A whole site on a virtual clock: the real lanes, runners, decisions, store and outbox against simulated far ends.

Faults are injected, and the promises are checked at every step. All chance comes from one seed: the same seed gives the
same run. No socket is opened and no thread is started; the store's files are real files.
"""

from gateway.simulation.plan import Plan
from gateway.simulation.report import Report
from gateway.simulation.simulate import Parts, simulate

__all__ = ["Parts", "Plan", "Report", "simulate"]
