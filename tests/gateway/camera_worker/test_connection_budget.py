import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from gateway.camera_worker.connection_budget import ConnectionBudget


def test_turns_of_all_processes_are_spread(tmp_path):
    path = tmp_path / "turn"
    script = (
        "import sys; from pathlib import Path; from gateway.camera_worker.connection_budget import ConnectionBudget\n"
        "b = ConnectionBudget(path=Path(sys.argv[1]), monotonic=lambda: 1000.0, per_second=10)\n"
        "print(*(b.next_turn() for _ in range(8)))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    turns = sorted(float(turn) for process in running for turn in process.communicate(timeout=20)[0].split())
    assert len(turns) == 24
    assert all(after - before == pytest.approx(0.1) for before, after in pairwise(turns))


def test_a_quiet_site_waits_for_nothing(tmp_path):
    now = [50.0]
    budget = ConnectionBudget(path=tmp_path / "turn", monotonic=lambda: now[0], per_second=4)
    assert [budget.next_turn(), budget.next_turn()] == [50.0, 50.25]
    now[0] = 60.0
    assert budget.next_turn() == 60.0
    now[0] = 1.0  # the machine was started anew
    assert budget.next_turn() == 1.0


def test_without_its_file_cameras_connect_all_the_same(tmp_path):
    assert ConnectionBudget(path=tmp_path / "none" / "turn", monotonic=lambda: 5.0).next_turn() == 5.0


def test_threads_share_it_and_giving_up_ends_the_wait(tmp_path):
    budget = ConnectionBudget(path=tmp_path / "turn", monotonic=lambda: 5.0, per_second=1)
    with ThreadPoolExecutor(8) as pool:
        turns = sorted(pool.map(lambda _: budget.next_turn(), range(16)))
    assert turns == [5.0 + number for number in range(16)]
    given_up = threading.Event()
    given_up.set()
    assert not budget.wait_for_turn(given_up)
