"""Incidents that were copied here: the machine answers each event as it did then."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.lanes.incidents import read_incident
from gateway.lanes.tape import replayed

SAVED = sorted((Path(__file__).parent / "incidents").glob("*.incident"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_saved_incident_is_answered_as_it_was(path):
    assert replayed(read_incident(path.read_bytes())) is None


def test_there_are_incidents():
    assert SAVED
