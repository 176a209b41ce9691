"""Dense traffic at a real gateway for minutes, and what that takes: `python tests/simulators/soak.py --minutes 20`.

A simulated field with cameras, a central, and a vehicle at every lane as soon as the one before has gone; people who
sign in, look and leave. Memory, descriptors, threads, the lag of the loop, the write-ahead log and the disk are sampled
every few seconds. They must be as large at the end as in the middle; `build/soak.svg` draws them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from free_ports import free_port
from processes import megabytes, tree
from waiting import wait_until

from simulation.demo.scene import GOOD_CARDS, LANES, FieldReady, add_account, write_site

_ROOT = Path(__file__).resolve().parents[2]
_EVERY_SECONDS = 3.0
_START_SECONDS = 120.0
_BYTES_AN_EVENT = 6_000
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that must not grow: by `share` and `beyond` it may."""

    name: str
    unit: str
    share: float
    beyond: float


MEASURES = (
    Measure("memory", "MB", 0.05, 10),
    Measure("descriptors", "", 0.0, 8),
    Measure("threads", "", 0.0, 4),
    Measure("loop lag", "ms", 1.0, 20),
    Measure("write-ahead log", "MB", 0.5, 6),
    Measure("disk for each event", "bytes", 0.0, _BYTES_AN_EVENT),
)


@dataclass
class Site:
    """The field and the gateway, as processes."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    session: str = ""
    port: int = 0
    key: str = ""

    def start(self) -> None:
        """Start both and sign in."""
        words = [sys.executable, "-m", "simulation.demo.field", "--folder", self.folder / "field", "--no-traffic"]
        with (self.folder / "field.log").open("wb") as log:
            self.processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log))
        self.ready = FieldReady.model_validate_json(self.processes[0].stdout.readline())
        self.port = free_port()
        site = write_site(self.folder / "site", self.ready, port=self.port)
        add_account(self.folder / "data")
        with (self.folder / "gateway.log").open("wb") as log:
            words = [sys.executable, "-m", "gateway", "run", site, "--data", self.folder / "data"]
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))
        wait_until(lambda: self.ask("GET", "/health/ready")[0] == 200, "the gateway gets ready", within=_START_SECONDS)
        self.session = json.loads(self.ask("POST", "/v1/auth/login", {"username": "demo", "password": "demo"})[1])[
            "session"
        ]

        words = [sys.executable, "-m", "gateway", "users", "key", "add", "soak", "--may", "can_view_devices"]
        made = subprocess.run([*words, "--data", self.folder / "data"], check=True, capture_output=True, text=True)
        self.key = max(made.stdout.split(), key=len)

    @property
    def gateway(self) -> int:
        """The gateway's process id."""
        return self.processes[1].pid

    def end(self) -> None:
        """End both."""
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ask(self, method: str, path: str, body: object = None, base: str = "") -> tuple[int, bytes]:
        """Ask the gateway, or another address; status 0 when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request((base or f"http://127.0.0.1:{self.port}") + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if path == "/metrics":
            request.add_header("Authorization", f"Bearer {self.key}")
        if self.session:
            request.add_header("SessionID", self.session)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError:
            return 0, b""


def traffic(site: Site, over: threading.Event) -> None:
    """Send vehicles to every lane; a lane whose queue is full has no room yet."""
    number = 0
    while not over.wait(0.5):
        for lane in LANES:
            card = GOOD_CARDS[number % len(GOOD_CARDS)].sent
            site.ask("POST", "/present", {"lane_id": lane.lane_id, "card": card}, base=site.ready.control_url)
            number += 1


def people(site: Site, over: threading.Event) -> None:
    """Look at what people look at, and sign in and out."""
    other = Site(site.folder, port=site.port)
    while not over.wait(0.3):
        answer = other.ask("POST", "/v1/auth/login", {"username": "demo", "password": "demo"})
        other.session = json.loads(answer[1] or b"{}").get("session", "")
        for _ in range(10):
            other.ask("POST", "/v1/event/list", {"page_limit": 100})
            other.ask("GET", "/status/now")
            other.ask("POST", "/v1/camera/event/list", {"page_limit": 50})
            if over.wait(0.3):
                return
        other.ask("POST", "/v1/auth/logout", {})


class Sampler:
    """Samples of a running site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lag = (0.0, 0.0)
        self._first: tuple[int, int] | None = None
        self.events = 0

    def take(self) -> list[float]:
        """Measure once, in the order of MEASURES."""
        processes = tree(self._site.gateway)
        data = self._site.folder / "data"
        wal = sum(path.stat().st_size for path in data.glob("*-wal"))
        self.events = int(json.loads(self._site.ask("POST", "/v1/event/list", {"page_limit": 1})[1])["count"])
        disk = sum(path.stat().st_size for path in data.glob("*.db"))
        self._first = self._first or (self.events, disk)
        new = self.events - self._first[0]
        return [
            megabytes(processes)[1],
            float(sum(_count(process, "fd") for process in processes)),
            float(sum(_count(process, "task") for process in processes)),
            self._loop_lag() * 1000,
            wal / _MEGABYTE,
            (disk - self._first[1]) / new if new else 0.0,
        ]

    def _loop_lag(self) -> float:
        """Return the mean since the last sample."""
        text = self._site.ask("GET", "/metrics")[1].decode()
        sums = [
            float(found[1])
            for name in ("sum", "count")
            if (found := re.search(rf"^edge_gateway_loop_lag_seconds_{name} (\S+)", text, re.MULTILINE))
        ]
        if len(sums) != 2:
            raise SystemExit("the metric edge_gateway_loop_lag_seconds is not there")
        before, self._lag = self._lag, (sums[0], sums[1])
        return (sums[0] - before[0]) / max(1.0, sums[1] - before[1])


def grown(samples: list[list[float]]) -> list[str]:
    """Compare the last third with the one before; say what has grown."""
    third = len(samples) // 3
    faults = []
    for place, measure in enumerate(MEASURES):
        middle = median(sample[place] for sample in samples[third : 2 * third])
        last = median(sample[place] for sample in samples[2 * third :])
        print(f"{measure.name}: {middle:.1f} in the middle, {last:.1f} at the end {measure.unit}")
        if last > middle * (1 + measure.share) + measure.beyond:
            faults.append(f"{measure.name} has grown from {middle:.1f} to {last:.1f} {measure.unit}")
    return faults


def drawn(samples: list[list[float]], minutes: float, events: int) -> str:
    """Draw each measure over time, as SVG."""
    width, height, left = 640, 90, 110
    foot, rows = height - 10, []
    for place, measure in enumerate(MEASURES):
        values = [sample[place] for sample in samples]
        step, most = (width - left - 20) / max(1, len(values) - 1), max(*values, 1e-9) * 1.1
        points = " ".join(
            f"{left + number * step:.1f},{foot - value / most * (height - 30):.1f}"
            for number, value in enumerate(values)
        )
        rows.append(
            f'<g transform="translate(0,{30 + place * height})"><text x="0" y="20">{measure.name}</text>'
            f'<text x="0" y="38">{max(values):.1f} {measure.unit}</text>'
            f'<line x1="{left}" y1="{foot}" x2="{width - 20}" y2="{foot}" stroke="#999"/>'
            f'<polyline points="{points}" fill="none" stroke="#0366a6" stroke-width="1.5"/></g>'
        )
    total = 40 + len(MEASURES) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}"'
        ' font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="0" y="18" font-size="14">{minutes:.0f} minutes, {events} events; the largest value under each name'
        f"</text>{''.join(rows)}</svg>\n"
    )


def _count(pid: int, what: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/{what}").iterdir())


def main() -> None:
    """Let it run, and judge; ends with 1 when something has grown."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--minutes", type=float, default=20)
    command.add_argument("--svg", type=Path, default=_ROOT / "build" / "soak.svg")
    asked = command.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    site, over, samples = Site(folder), threading.Event(), list[list[float]]()
    workers = [threading.Thread(target=work, args=(site, over)) for work in (traffic, people, people)]
    try:
        site.start()
        for worker in workers:
            worker.start()
        sampler, end = Sampler(site), time.monotonic() + asked.minutes * 60
        while time.monotonic() < end:
            time.sleep(_EVERY_SECONDS)  # from one sample to the next
            try:
                samples.append(sampler.take())
            except (FileNotFoundError, ProcessLookupError):  # a child that ended meanwhile
                continue
            if len(samples) % 10 == 0:
                said = ", ".join(f"{one.name} {value:.1f}" for one, value in zip(MEASURES, samples[-1], strict=True))
                print(f"{sampler.events} events: {said}", flush=True)
    finally:
        over.set()
        for worker in workers:
            if worker.ident is not None:
                worker.join()
        site.end()
        shutil.rmtree(folder, ignore_errors=True)
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text(drawn(samples, asked.minutes, sampler.events))
    faults = grown(samples)
    print("\n".join(faults) or f"flat over {asked.minutes:g} minutes and {sampler.events} events")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
