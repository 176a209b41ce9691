"""Fixtures of the backup's tests."""

from __future__ import annotations

import pytest

from gateway.backup import archive


@pytest.fixture(autouse=True)
def _cheap_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys at little cost: a third of a second for each backup is meant for those who guess."""
    monkeypatch.setattr(archive, "SCRYPT_COST", 2**6)
