"""This process and its children, as the kernel counts them."""

from __future__ import annotations

import os
import subprocess
import sys

from gateway.runtime.machine_state import processes


def test_a_child_is_counted_while_it_runs_and_what_it_wrote_for_ever(tmp_path):
    program = (
        "import os, sys\n"
        f"file = open({str(tmp_path / 'written')!r}, 'wb')\n"
        "file.write(os.urandom(4_000_000)); file.flush(); os.fsync(file.fileno())\n"
        "print('written', flush=True); sys.stdin.read()"
    )
    earlier = [one.written for one in processes()]
    before = sum(earlier)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"written\n"
        found = processes()
        child.stdin.close()
        child.wait(30)
    assert [one.name for one in found][:1] == ["gateway"]
    (other,) = [one for one in found if one.written >= 4_000_000 and one.written not in earlier]
    assert other.name == "other"
    assert other.resident > 1_000_000
    after = processes()
    assert other not in after
    assert sum(one.written for one in after) - before >= 4_000_000


def test_a_child_has_the_name_of_its_work():
    words = [sys.executable, "-m", "gateway.camera_worker", "--socket", "/nowhere/at/all", "--media", "/nowhere"]
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", *words[1:]], stdin=subprocess.PIPE
    ) as child:
        names = {one.name for one in processes()}
        child.stdin.close()
        child.wait(30)
    assert "camera worker" in names


def test_a_machine_that_keeps_these_figures_back_gives_none(tmp_path):
    (tmp_path / str(os.getpid())).mkdir()
    assert processes(tmp_path) == ()
