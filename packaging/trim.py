"""Remove from a virtual environment what a running gateway never uses.

The simulation, debug information of compiled modules, their sources, type stubs, the libraries' own tests, two encoders
of av's FFmpeg, which weigh as much as the rest of it, and what botocore knows of services other than S3. The
installation trial runs recording, WebRTC, OSDP and TLS from the trimmed environment. Called as `trim.py ENVIRONMENT`;
needs binutils.
"""

from __future__ import annotations

import gzip
import platform
import shutil
import subprocess
import sys
from pathlib import Path

UNUSED_ENCODERS = ("libx265", "libSvtAv1Enc")
"""Encoders of H.265 and AV1 in av.libs. Streams of cameras are stored as they come, and decoded by other libraries."""

_OF_S3 = frozenset({"s3", "endpoints.json", "partitions.json", "sdk-default-configuration.json", "_retry.json"})
"""What botocore reads of its data to speak with an S3 store."""
_SOURCES = frozenset({".pyx", ".pxd", ".pxi", ".pyi", ".c", ".h", ".a"})
_TESTS = frozenset({"test", "tests"})
_RETURN_NOTHING = {"x86_64": "xor %eax, %eax\nret", "aarch64": "mov x0, #0\nret"}


TOOLS = "simulation"
"""The package with far ends, demo and simulation. The commands that need it say that it is left out."""


def trim(environment: Path) -> None:
    """Remove what is not used at run time. Raises CalledProcessError when a tool of binutils fails."""
    packages = [folder for folder in environment.glob("lib/python3*/site-packages/*") if folder.is_dir()]
    for tools in [package for package in packages if package.name == TOOLS]:
        packages.remove(tools)
        shutil.rmtree(tools)
    for package in packages:
        for tests in [found for name in _TESTS for found in package.rglob(name) if found.is_dir()]:
            shutil.rmtree(tests)
        for path in [found for found in package.rglob("*") if found.suffix in _SOURCES and found.is_file()]:
            path.unlink()
        if package.name == "av.libs":
            for name in UNUSED_ENCODERS:
                empty(package, name)
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


def empty(folder: Path, name: str) -> None:
    """Put an empty library in the place of one that others in `folder` are linked with.

    It has the symbols that they look up when they are loaded. Each answers null, which FFmpeg takes for a build without
    that encoder's bit depths.
    """
    (library,) = folder.glob(f"{name}-*.so*")
    offered = _symbols(library, "--defined-only")
    wanted = set[str]().union(*(_symbols(other, "--undefined-only") for other in folder.glob("*.so*")))
    lines = [".text", *(f".globl {symbol}\n{symbol}:" for symbol in sorted(offered & wanted))]
    source, compiled = folder / "empty.s", folder / "empty.o"
    source.write_text("\n".join([*lines, _RETURN_NOTHING[platform.machine()], ""]), encoding="ascii")
    subprocess.run(["as", "-o", compiled, source], check=True)
    subprocess.run(["ld", "-shared", "-z", "noexecstack", "-soname", library.name, "-o", library, compiled], check=True)
    source.unlink()
    compiled.unlink()


def _symbols(library: Path, kind: str) -> set[str]:
    listed = subprocess.run(["nm", "-D", kind, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].partition("@")[0] for line in listed.splitlines()}


if __name__ == "__main__":
    trim(Path(sys.argv[1]))
