"""Number of the data folder, which tells this box's records at central from those of another box."""

from __future__ import annotations

import sqlite3


def box_number(connection: sqlite3.Connection) -> int:
    """Read the number that was drawn when the file was made."""
    (number,) = connection.execute("SELECT number FROM box").fetchone()
    return int(number)
