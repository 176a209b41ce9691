"""Each import contract can fail: on a skeleton of the real tree, forbidden imports are planted and must be named."""

import re
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.long("the import linter once for each contract")

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def layer_modules(layer):
    return [name for name in re.split(r"[\s|:]+", layer) if "(" not in name]


def forbidden_imports(contract):
    """(importer, imported) pairs that together use every module that the contract names."""
    if contract["type"] == "layers":
        layers = [layer_modules(layer) for layer in contract["layers"]]
        for upper, lower in pairwise(layers):
            yield from ((low, high) for low in lower for high in upper)
        for layer in contract["layers"]:
            if ":" not in layer:  # a colon lets the modules of a layer import each other
                yield from pairwise(layer_modules(layer))
    elif contract["type"] == "independence":
        modules = contract["modules"]
        yield from ((one, other) for one in modules for other in modules if one != other)
    else:
        sources, targets = contract["source_modules"], contract["forbidden_modules"]
        yield from ((sources[0], target) for target in targets)
        yield from ((source, targets[0]) for source in sources[1:])


def skeleton(folder):
    """The packages of the real tree, every module empty, under the real contracts."""
    for package in ("gateway", "drivers", "simulation"):
        for module in (ROOT / package).rglob("*.py"):
            copy = folder / module.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.touch()
    shutil.copy(ROOT / "pyproject.toml", folder)


def plant(folder, importer, imported):
    path = folder.joinpath(*importer.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assert file.exists(), f"a contract names {importer}, which does not exist"
    with file.open("a") as text:
        text.write(f"import {imported}\n")


def lint(folder, contract_id):
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--contract", contract_id],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["id"])
def test_contract_names_each_planted_import(contract, tmp_path):
    skeleton(tmp_path)
    planted = list(forbidden_imports(contract))
    for importer, imported in planted:
        plant(tmp_path, importer, imported)

    result = lint(tmp_path, contract["id"])

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract['name']} BROKEN" in result.stdout
    missed = [pair for pair in planted if f"{pair[0]} -> {pair[1]}" not in result.stdout]
    assert not missed, result.stdout


def test_skeleton_alone_keeps_a_contract(tmp_path):
    skeleton(tmp_path)
    result = lint(tmp_path, "layers")
    assert result.returncode == 0, result.stdout + result.stderr
