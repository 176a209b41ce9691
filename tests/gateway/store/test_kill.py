"""Promise: what was acknowledged is on disk, and no id is used twice, through kill -9 at any moment."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("acknowledging_writer.py")
ROUNDS = 6


def acknowledged_until_killed(folder, lines):
    """The acknowledged ids and what was said of each; the program is killed after some number of them."""
    said = {}
    with subprocess.Popen([sys.executable, str(PROGRAM), str(folder)], stdout=subprocess.PIPE, text=True) as program:
        try:
            for line in program.stdout:
                if not line.endswith("\n"):
                    break  # the kill cut it
                number, _, description = line.strip().partition(" ")
                assert int(number) not in said
                said[int(number)] = description
                if len(said) == lines:
                    program.send_signal(signal.SIGKILL)
        finally:
            program.kill()
    return said


@pytest.mark.long("six processes that are killed")
async def test_acknowledged_events_outlive_kill_and_ids_go_on_upwards(opened, tmp_path):
    known: dict[int, str] = {}
    for number in range(ROUNDS):
        said = acknowledged_until_killed(tmp_path, random.randint(20, 400))
        assert said
        assert not known or min(said) > max(known)
        known |= said
        async with opened(tmp_path) as store:
            assert store.was_unclean
            assert store.salvaged == ()
            assert (await store.outbox.books()).balance()
        with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
            assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            rows = dict(connection.execute("SELECT id, description FROM event"))
            (count,) = connection.execute("SELECT sum(count) FROM event_range WHERE span = 12").fetchone()
        assert {key: rows.get(key) for key in known} == known, f"round {number}"
        assert count == len(rows)
