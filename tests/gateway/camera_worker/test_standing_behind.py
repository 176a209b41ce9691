"""A clip cutter stands behind the process of the lanes, for the processor and when memory runs out."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path


def test_a_cutter_gives_way_before_it_takes_an_order():
    words = [sys.executable, "-m", "gateway.camera_worker.cutter"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cutter:
        score = Path(f"/proc/{cutter.pid}/oom_score_adj")
        until = time.monotonic() + 50
        while score.read_text().strip() != "600":
            assert cutter.poll() is None
            assert time.monotonic() < until
            threading.Event().wait(0.05)
        assert os.getpriority(os.PRIO_PROCESS, cutter.pid) == 10
        cutter.stdin.close()
        assert cutter.wait(50) == 0
