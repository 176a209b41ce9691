"""Advice: the texts for a kind of problem."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.events import Severity

OWN_FILE = (
    "A password is alone in its file, `secrets/NAME` beside the site file. After a change of it: `edge-gateway reload`."
)
"""The step for whoever has to change a secret."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The texts and the severity of a kind of problem.

    Attributes:
        title: the kind's name for people.
        severity: the severity of a problem of this kind that stops no lane.
        means: the consequences for drivers.
        steps: the steps to take, in order.
    """

    title: str
    severity: Severity
    means: str
    steps: tuple[str, ...]
