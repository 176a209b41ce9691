"""Imports of the daemon before its lanes are under control."""

from __future__ import annotations

import subprocess
import sys

LATER = ("gateway.web", "gateway.fleet", "gateway.mqtt", "cryptography", "argon2")
LATER += ("xlsxwriter", "nats", "paramiko", "botocore", "av")


def test_lanes_start_without_the_web_and_what_only_it_needs():
    words = "import sys, gateway.app.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True).stdout.split()
    assert "gateway.lanes" in loaded
    assert sorted(set(LATER) & set(loaded)) == []
