"""Secrets that commands ask for."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("backup", "backup.tar.gz"), "use --passphrase-file or set EDGE_GATEWAY_BACKUP_PASSPHRASE"),
        (("status", "--url", "https://chief@127.0.0.1:1"), "set EDGE_GATEWAY_PASSWORD"),
    ],
)
def test_without_a_terminal_a_command_says_how_else_a_secret_is_given(tmp_path, words, remedy):
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        cwd=tmp_path,
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,  # no terminal to open either
        timeout=60,
        check=False,
    )
    *_, last = done.stderr.splitlines()
    assert done.returncode == 2
    assert last.startswith("edge-gateway: there is no terminal to ask for a secret at; ")
    assert remedy in last
    assert "Warning" not in done.stderr
