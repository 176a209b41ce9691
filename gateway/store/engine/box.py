"""The number of the data folder: it tells its records at central from those of another box with the same site name."""

from __future__ import annotations

import sqlite3


def box_number(connection: sqlite3.Connection) -> int:
    """Read the number that was drawn when the file was made."""
    (number,) = connection.execute("SELECT number FROM box").fetchone()
    return int(number)
