"""The sandbox of a camera worker: what a worker that was taken over could still reach."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from gateway.runtime import landlock

pytestmark = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")

TRIES = """
import json, os, signal, socket, sqlite3, subprocess, sys
from pathlib import Path
from gateway.camera_worker.process import confine_worker

data = Path(sys.argv[1])
confine_worker(media=data / "media", turn=data / "run" / "connections.turn")

def said(tried):
    try:
        tried()
    except Exception as error:
        return type(error).__name__
    return "done"

def abstract():
    with socket.socket(socket.AF_UNIX) as end:
        end.connect("\\0" + sys.argv[2])

def renamed():
    (data / "media" / "new").write_bytes(b"x")
    (data / "media" / "new").rename(data / "media" / "newer")

def moved_in():
    (data / "site.db").rename(data / "media" / "site.db")

def linked():
    (data / "media" / "way").symlink_to(data / "site.db")
    return (data / "media" / "way").read_bytes()

def hard_linked():
    (data / "media" / "hard").hardlink_to(data / "site.db")

def in_place_of_the_socket():
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(data / "run" / "other.sock"))

def by_a_child():
    subprocess.run([sys.executable, "-c", "import sys; open(sys.argv[1]).read()", str(data / "site.db")], check=True,
                   stderr=subprocess.DEVNULL)

def written_in_media():
    (data / "media" / "201").mkdir()
    (data / "media" / "201" / "a.ts").write_bytes(b"footage")
    return renamed()

tries = {
    "read site.db": lambda: (data / "site.db").read_bytes(),
    "open site.db by SQLite": lambda: sqlite3.connect(data / "site.db").execute("pragma user_version").fetchall(),
    "write site.db": lambda: (data / "site.db").open("r+b"),
    "read a secret": lambda: (data / "secrets" / "central").read_bytes(),
    "list the data folder": lambda: list(data.iterdir()),
    "read the account's file": lambda: Path("/etc/shadow").read_bytes(),
    "by the way of /proc": lambda: Path(f"/proc/self/root{data}/site.db").read_bytes(),
    "by the parent's root": lambda: Path(f"/proc/{os.getppid()}/root{data}/site.db").read_bytes(),
    "read the parent's memory": lambda: Path(f"/proc/{os.getppid()}/mem").open("rb"),
    "move it in": moved_in,
    "link to it": linked,
    "give it another name": hard_linked,
    "put a socket beside the gateway's": in_place_of_the_socket,
    "remove the gateway's socket": lambda: (data / "run" / "interface.sock").unlink(),
    "ask a child": by_a_child,
    "connect to an abstract socket": abstract,
    "signal the parent": lambda: os.kill(os.getppid(), signal.SIGWINCH),
    "write footage": written_in_media,
    "read a library": lambda: Path(json.__file__).read_bytes(),
    "start a cutter": lambda: subprocess.run([sys.executable, "-c", "import gateway.camera_worker.cutter"], check=True),
    "find a name": lambda: socket.getaddrinfo("localhost", 80),
    "its own place when memory runs out": lambda: Path("/proc/self/oom_score_adj").write_text("1000"),
    "take a turn": lambda: (data / "run" / "connections.turn").open("r+b").close(),
}
print(json.dumps({name: said(tried) for name, tried in tries.items()}))
"""
MAY = {
    "write footage",
    "read a library",
    "start a cutter",
    "find a name",
    "its own place when memory runs out",
    "take a turn",
}


@pytest.fixture
def data(tmp_path):
    """A data folder as a gateway has it."""
    for name in ("media", "run", "secrets"):
        (tmp_path / name).mkdir()
    for name in ("site.db", "secrets/central", "run/interface.sock"):
        (tmp_path / name).touch()
    return tmp_path


def tried(data) -> dict[str, str]:
    """Try all of it in a process whose present folder is /, as in a unit."""
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(name := f"\0edge-gateway-{os.getpid()}")
        end.listen()
        words = [sys.executable, "-c", TRIES, str(data), name[1:]]
        environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        done = subprocess.run(words, cwd="/", env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_worker_reaches_footage_and_libraries_and_nothing_of_the_gateway(data):
    found = tried(data)
    if landlock.version() < 6:
        for name in ("connect to an abstract socket", "signal the parent"):
            found.pop(name)
    assert {name for name, said in found.items() if said == "done"} == MAY, found
    assert (data / "site.db").exists()


async def test_a_worker_whose_media_folder_is_another_one_ends_and_is_begun_anew(start_worker):
    """Its rights are for the disk that was mounted; another disk gets another worker."""
    worker = await start_worker(read_reports=False)
    await worker.assign()  # it serves once it is confined to its folder
    worker.media.rename(worker.media.with_name("away"))
    worker.media.mkdir()
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == 0
