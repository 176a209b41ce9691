"""Remove from a virtual environment what a running gateway never uses.

The simulation, debug information of compiled modules, their sources, type stubs, the libraries' own tests, and what
botocore knows of services other than S3. The installation trial runs recording, WebRTC, OSDP and TLS from the trimmed
environment. Called as `trim.py ENVIRONMENT`; needs binutils.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

_OF_S3 = frozenset({"s3", "endpoints.json", "partitions.json", "sdk-default-configuration.json", "_retry.json"})
"""What botocore reads of its data to speak with an S3 store."""
_SOURCES = frozenset({".pyx", ".pxd", ".pxi", ".pyi", ".c", ".h", ".a"})
_TESTS = frozenset({"test", "tests"})
TOOLS = "simulation"
"""The package with far ends, demo and simulation. The commands that need it say that it is left out."""


def trim(environment: Path) -> None:
    """Remove what is not used at run time. Raises CalledProcessError when `strip` fails."""
    packages = [folder for folder in environment.glob("lib/python3*/site-packages/*") if folder.is_dir()]
    for tools in [package for package in packages if package.name == TOOLS]:
        packages.remove(tools)
        shutil.rmtree(tools)
    for package in packages:
        for tests in [found for name in _TESTS for found in package.rglob(name) if found.is_dir()]:
            shutil.rmtree(tests)
        for path in [found for found in package.rglob("*") if found.suffix in _SOURCES and found.is_file()]:
            path.unlink()
        if package.name == "botocore":
            keep_s3(package / "data")
    compiled = [path for path in environment.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    subprocess.run(["strip", "--strip-debug", *compiled], check=True)


def keep_s3(data: Path) -> None:
    """Remove every other service from botocore's data, and compress the longest file, which it also reads so."""
    for path in data.iterdir():
        if path.name not in _OF_S3:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    endpoints = data / "endpoints.json"
    endpoints.with_suffix(".json.gz").write_bytes(gzip.compress(endpoints.read_bytes(), mtime=0))
    endpoints.unlink()


if __name__ == "__main__":
    trim(Path(sys.argv[1]))
