"""Needs of a test that this machine may lack: the one place that decides between a failure and a skip."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """Fail under CI, where everything that can be installed is; skip elsewhere. `what` names the remedy."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def cannot(why: str) -> NoReturn:
    """Skip everywhere: this machine does not allow what the test needs, and nothing can be installed for it."""
    pytest.skip(f"this machine cannot run it: {why}")
