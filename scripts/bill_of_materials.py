"""The parts of the product: its libraries with their licences, from the lock and from what is installed.

`python scripts/bill_of_materials.py` writes `docs/licences.md`; with a file's name, a bill of materials there.
It needs the standard library alone, so that the package's own build can make one.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCK = ROOT / "requirements" / "runtime.lock"

ALLOWED = frozenset(
    {
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "LGPL-2.1-or-later",
        "MIT",
        "MIT-0",
        "PSF-2.0",
    }
)
"""Licences that a library may have. The LGPL suits one that is installed beside the program, and not changed."""
_TOLD = {
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "LGPL-2.1": "LGPL-2.1-or-later",  # paramiko; each of its files says "or any later version"
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""What older metadata says, in the words of SPDX."""
_INSIDE = {
    "av": "FFmpeg with x264, under GPL-2.0-or-later. Only camera workers and clip cutters load it, as processes "
    "of their own. Whoever passes the package on offers the source of FFmpeg and x264 with it",
    "cryptography": "OpenSSL, under Apache-2.0",
    "libosdp": "the C library of the same name, under Apache-2.0",
    "pynacl": "libsodium, under ISC",
    "pylibsrtp": "libsrtp, under BSD-3-Clause",
    "tzdata": "the time zone database, in the public domain",
}
"""Other people's work inside a library's wheel."""

_HEAD = """# Licences

The libraries that the product runs with, as `requirements/runtime.lock` pins them, and their licences as their own
metadata says. Made by `make docs`; a test refuses a licence that is not on the list of `scripts/bill_of_materials.py`.

`make sbom` writes the same as a bill of materials, in CycloneDX, with versions. The Debian package has it at
`/usr/share/doc/edge-gateway/sbom.cdx.json`.

| library | licence | inside its wheel |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Component:
    """A library: its name, its version, its licence as an expression of SPDX, and the libraries that it needs."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]

    @property
    def address(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def components() -> tuple[Component, ...]:
    """Return the libraries of the lock that are installed here; those of other systems are not. By name."""
    names = {plain(name) for name in re.findall(r"^([\w.-]+)==", LOCK.read_text("utf-8"), re.MULTILINE)}
    return tuple(_installed(names))


def licence_of(found: Distribution) -> str:
    """Return a licence as an expression of SPDX, "" where the metadata does not tell."""
    told = found.metadata
    if expression := told.get("License-Expression"):
        return _TOLD.get(expression, str(expression))
    classifiers = [item.rpartition(":: ")[2] for item in told.get_all("Classifier") or () if item.startswith("License")]
    words = str(told.get("License") or "").strip()
    if words in ALLOWED:
        return words
    return next((_TOLD[item] for item in (words, *classifiers) if item in _TOLD), "")


def is_allowed(licence: str) -> bool:
    """Return whether a library with this licence may be used: of alternatives one must be on the list, else each."""
    if "(" in licence or not licence:
        return False
    return any(all(one.strip() in ALLOWED for one in way.split(" AND ")) for way in licence.split(" OR "))


def page() -> str:
    """Return the page as it should be."""
    rows = (f"| {one.name} | {one.licence or '?'} | {_INSIDE.get(one.name, '')} |\n" for one in components())
    return _HEAD + "".join(rows)


def bill(release: str) -> dict[str, object]:
    """Return the bill of materials (CycloneDX 1.6). Equal inputs give equal bills."""
    parts = components()
    addresses = {one.name: one.address for one in parts}
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    whole = f"pkg:pypi/edge-gateway@{release}"
    names = "\n".join([whole, *addresses.values()])
    tree = [(whole, _needs(distribution("edge-gateway"), set(addresses))), *((one.address, one.needs) for one in parts)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, names)}",
        "version": 1,
        "metadata": {
            "timestamp": moment.isoformat().replace("+00:00", "Z"),
            "component": {
                "type": "application",
                "bom-ref": whole,
                "name": "edge-gateway",
                "version": release,
                "purl": whole,
            },
        },
        "components": [
            {
                "type": "library",
                "bom-ref": one.address,
                "name": one.name,
                "version": one.version,
                "purl": one.address,
                "licenses": [{"expression": one.licence}] if one.licence else [],
            }
            for one in parts
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": [addresses[name] for name in needs if name in addresses]} for ref, needs in tree
        ],
    }


def plain(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(names: set[str]) -> Iterator[Component]:
    for name in sorted(names):
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of another system, or of another Python
            continue
        yield Component(name, found.version, licence_of(found), _needs(found, names))


def _needs(found: Distribution, names: set[str]) -> tuple[str, ...]:
    """Return the libraries of the lock that one needs, without its extras."""
    wanted = (one for one in found.requires or () if "extra ==" not in one.replace("'", '"'))
    return tuple(sorted({plain(re.split(r"[\s;<>=!~\[(]", one, maxsplit=1)[0]) for one in wanted} & names))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        text = json.dumps(bill(distribution("edge-gateway").version), indent=2, sort_keys=True)
        Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(sys.argv[1]).write_text(f"{text}\n", "utf-8")
    else:
        PAGE.write_text(page(), "utf-8")
