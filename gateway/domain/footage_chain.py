"""Chain of a camera's segments: each link proves its own segment and all earlier ones.

A leaf is the SHA-256 of a segment's path (camera, start and duration as recorded) and of the SHA-256 of its bytes. A
link is the SHA-256 of the link before it and the leaf. Links are numbered from 1 in the order in which segments became
known, which is nearly that of time. From one link of a camera, anybody can prove a later one with the leaves between
them, even if their footage was deleted. All values are 64 hexadecimal digits. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

GENESIS = "0" * 64
"""The link before a camera's first segment."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a segment in its camera's chain.

    Attributes:
        number: the number of its link, counted from 1 for each camera.
        previous: the link before its own.
    """

    number: int
    previous: str


def leaf_of(*, path: str, sha256: str) -> str:
    """Hash a segment for its link: its path in the media folder and the SHA-256 of its bytes."""
    return hashlib.sha256(f"edge-gateway segment\n{path}\n{sha256}\n".encode("ascii")).hexdigest()


def link_of(previous: str, leaf: str) -> str:
    """Compute the link after `previous`."""
    return hashlib.sha256(bytes.fromhex(previous) + bytes.fromhex(leaf)).hexdigest()


def walked(link: str, leaves: Iterable[str]) -> str:
    """Compute the link after adding `leaves` to `link` in order."""
    for leaf in leaves:
        link = link_of(link, leaf)
    return link
