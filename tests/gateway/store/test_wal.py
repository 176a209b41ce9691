from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from gateway.store.engine.recovery import commits_lost

COMMITS = 20


@pytest.fixture
def wal(tmp_path):
    """The log of 20 commits on top of an older, checkpointed log in the same file."""
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE t (n INTEGER)")
        for n in range(60):
            connection.execute("INSERT INTO t VALUES (?)", (n,))
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        for n in range(COMMITS):
            connection.execute("INSERT INTO t VALUES (?)", (n,))
        shutil.copy(tmp_path / "a.db-wal", tmp_path / "cut")
    return tmp_path / "cut"


def flip(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))


FRAME = 24 + 4096


def test_a_whole_log_lost_nothing(wal):
    assert commits_lost(wal) == 0


def test_no_log_lost_nothing(tmp_path):
    assert commits_lost(tmp_path / "none") == 0
    (tmp_path / "empty").touch()
    assert commits_lost(tmp_path / "empty") == 0


@pytest.mark.parametrize("frame", [0, 7, COMMITS - 2, COMMITS - 1])
@pytest.mark.parametrize("byte", [3, 9, 17, 24, 4000])
def test_commits_behind_a_wrong_frame_are_counted(wal, frame, byte):
    flip(wal, 32 + frame * FRAME + byte)
    foreign = byte == 9  # a frame with other salts cannot be told from an older log's
    assert commits_lost(wal) == COMMITS - frame - (1 if foreign else 0)


def test_a_wrong_header_loses_all(wal):
    flip(wal, 20)
    assert commits_lost(wal) >= COMMITS
