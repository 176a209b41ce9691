"""Shorter time-outs of drivers, for tests that wait for what a far end does or leaves out; folders for other users."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers.bus import unit_states
from drivers.gates import polls


@pytest.fixture
def frequent_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let drivers report an unchanged value after a tenth of a second: a gate closes once its loops are confirmed."""
    monkeypatch.setattr(polls, "REFRESH_SECONDS", 0.1)


@pytest.fixture
def soon_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a device that does not answer be lost soon, and be asked again soon."""
    monkeypatch.setattr(polls, "LOST_AFTER_SECONDS", 0.5)
    monkeypatch.setattr(unit_states, "REST_SHARE", 0.5)
    monkeypatch.setattr(unit_states, "REST_SHARE_BESIDE_LIVE", 0.5)


@pytest.fixture
def reachable_path() -> Iterator[Path]:
    """Make a temporary folder that other users can pass through.

    It is outside the runner's own folder: each further run of a test closes that one to them.
    """
    with tempfile.TemporaryDirectory(prefix="edge-gateway-") as name:
        Path(name).chmod(0o711)
        yield Path(name)
