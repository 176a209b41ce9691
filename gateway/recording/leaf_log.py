"""The leaves of deleted segments, 32 bytes each, so that the chain over them can still be proven. Blocking.

They are in `chain/<camera id>/<block>.leaves` in the media folder. The place of a leaf in its file follows from its
number, so writing it again changes nothing; an interrupted write is repeated with its deletion. The leaves are not in
the database, because the whole database is checked after a power cut while gates wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from gateway.domain.footage_chain import leaf_of
from gateway.runtime.durable_files import sync_folder
from gateway.store import Segment

FOLDER = "chain"
LEAVES_PER_FILE = 65_536
MOST_FILES = 64
"""The greatest number of files per camera: about 134 MB, or three months of segments of 2 s."""

_BYTES = 32
_MISSING = bytes(_BYTES)


def keep(media: Path, segments: Iterable[Segment]) -> None:
    """Store the leaves of linked segments durably. Raises OSError."""
    leaves = sorted(
        (one.camera_id, one.place.number, leaf_of(path=one.path, sha256=one.sha256))
        for one in segments
        if one.place is not None
    )
    for (camera_id, block), group in groupby(leaves, key=lambda leaf: (leaf[0], leaf[1] // LEAVES_PER_FILE)):
        _write(_file(media, camera_id, block), [(number, leaf) for _, number, leaf in group])


def leaves(media: Path, camera_id: int, first: int, last: int) -> dict[int, str]:
    """Return the stored leaves of the numbers from `first` to `last`, both included, by number. Raises OSError."""
    found: dict[int, str] = {}
    for block in range(first // LEAVES_PER_FILE, last // LEAVES_PER_FILE + 1):
        low = max(first, block * LEAVES_PER_FILE)
        high = min(last, (block + 1) * LEAVES_PER_FILE - 1)
        try:
            with _file(media, camera_id, block).open("rb") as file:
                file.seek(low % LEAVES_PER_FILE * _BYTES)
                data = file.read((high - low + 1) * _BYTES)
        except FileNotFoundError:
            continue
        for at in range(0, len(data) - _BYTES + 1, _BYTES):
            if (leaf := data[at : at + _BYTES]) != _MISSING:
                found[low + at // _BYTES] = leaf.hex()
    return found


def _write(path: Path, leaves: list[tuple[int, str]]) -> None:
    fresh = not path.exists()
    if fresh:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        _thin(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        for number, leaf in leaves:
            os.pwrite(descriptor, bytes.fromhex(leaf), number % LEAVES_PER_FILE * _BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if fresh:
        for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
            sync_folder(folder)


def _thin(folder: Path) -> None:
    """Delete the files with the lowest numbers, so that there is room for one more."""
    files = sorted(folder.glob("*.leaves"), key=lambda file: int(file.stem))
    for file in files[: max(0, len(files) - MOST_FILES + 1)]:
        file.unlink(missing_ok=True)


def _file(media: Path, camera_id: int, block: int) -> Path:
    return media / FOLDER / str(camera_id) / f"{block}.leaves"
