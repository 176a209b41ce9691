"""Temporary folders that another user can reach, as a gateway's user can reach the data folder."""

from __future__ import annotations

import tempfile
from pathlib import Path


def reachable(folder: Path) -> Path:
    """Let every user pass through the folders that lead to this one; they can list none of them."""
    top = Path(tempfile.gettempdir()).resolve()
    for parent in (folder, *folder.resolve().parents):
        if parent == top or not parent.is_relative_to(top):
            break
        parent.chmod(parent.stat().st_mode | 0o011)
    return folder
