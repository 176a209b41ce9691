"""Advice: a kind of problem in words."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.events import Severity


@dataclass(frozen=True, slots=True)
class Advice:
    """A kind of problem in words.

    Attributes:
        title: its name for people.
        severity: how much it matters where it stops no lane.
        means: what it means for drivers now.
        steps: what to do, in this order.
    """

    title: str
    severity: Severity
    means: str
    steps: tuple[str, ...]
