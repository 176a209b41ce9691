"""Libraries: licences that may be, and a bill of materials that is whole."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("bill_of_materials", ROOT / "scripts" / "bill_of_materials.py")
assert SPEC is not None
assert SPEC.loader is not None
made = importlib.util.module_from_spec(SPEC)
sys.modules["bill_of_materials"] = made
SPEC.loader.exec_module(made)


def test_every_library_has_a_licence_that_may_be():
    assert [(one.name, one.licence) for one in made.components() if not made.is_allowed(one.licence)] == []
    assert len(made.components()) > 30


@pytest.mark.parametrize(
    ("licence", "may_be"),
    [
        ("MIT", True), ("Apache-2.0 AND MIT", True), ("GPL-3.0-only OR MIT", True), ("GPL-3.0-only", False),
        ("MIT AND AGPL-3.0-only", False), ("", False), ("(MIT OR GPL-3.0-only) AND MIT", False),
    ],
)  # fmt: skip
def test_a_licence_that_may_not_be_is_found(licence, may_be):
    assert made.is_allowed(licence) is may_be


def test_the_bill_is_whole_and_the_same_each_time(tmp_path):
    for name in ("one", "two"):
        words = [sys.executable, ROOT / "scripts" / "bill_of_materials.py", tmp_path / name]
        subprocess.run(words, check=True, timeout=50, env={"SOURCE_DATE_EPOCH": "1767225600"})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    bill = json.loads((tmp_path / "one").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(refs) == len(set(refs)) == len(made.components())
    tree = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert set(tree) == {*refs, bill["metadata"]["component"]["bom-ref"]}
    assert {each for needs in tree.values() for each in needs} <= set(refs)
    # every library is there because something needs it
    reached, ahead = set(), [bill["metadata"]["component"]["bom-ref"]]
    while ahead:
        ahead += [each for each in tree[ahead.pop()] if each not in reached and not reached.add(each)]
    assert reached == set(refs)
