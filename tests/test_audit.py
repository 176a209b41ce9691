"""The audit of libraries says plainly when it knows nothing."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[1] / "scripts" / "audit.py"


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", _SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(*dependencies) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


WELL = {"name": "aiohttp", "version": "3.14.5", "vulns": []}
FAULTY = {"name": "yarl", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": []}]}
UNKNOWN = {"name": "av", "skip_reason": "Dependency not found on PyPI and could not be audited: av (18.1)"}


def test_libraries_without_faults_pass(audit):
    assert audit.told(report(WELL)) == (0, ["No known fault in 1 libraries."])


def test_a_known_fault_is_named_with_its_remedy(audit):
    assert audit.told(report(WELL, FAULTY)) == (1, ["yarl 1.0: PYSEC-1, mended in 1.1"])


@pytest.mark.parametrize("text", ["", report(UNKNOWN), report(WELL, UNKNOWN), report(FAULTY, UNKNOWN)])
def test_what_was_not_looked_up_is_no_success(audit, text):
    status, lines = audit.told(text)
    assert status == 3
    assert "advisory service" in lines[-1]
