"""Print the source files that an open and a card pass inside the gateway, from the first byte to the command written.

The demo's field stands at the far end. Each way is walked several times and a file counts when every walk passed it,
so that what runs by itself meanwhile is left out. Files of the simulation and of libraries are not counted.

Run: python scripts/traced_ways.py [--rounds 8]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from types import FrameType
from typing import Any

from aiohttp.web_protocol import RequestHandler

from drivers.link import Connection
from simulation.demo import gateway as demo_gateway
from simulation.demo.scene import ACCOUNT, CARDS_SENT, LANES, FieldReady, add_account, write_site

ROOT = Path(__file__).parents[1]
PRODUCT = tuple(f"{ROOT / name}{os.sep}" for name in ("gateway", "drivers"))
GATE, LANE = LANES[0].gate, LANES[0].lane_id
_MODBUS_HEADER = 7
_WRITES = (5, 6, 15, 16)
_WITHIN = 60.0
_PAUSE = threading.Event()
"""An event that is never set: the thread outside the gateway waits by it."""
_BETWEEN = 12.0
"""Seconds in which the gate opens, lets pass and closes again."""


@dataclass
class Way:
    """One way through the gateway: how it begins, and the files of each walk in their order."""

    name: str
    begins: Callable[[bytes], bool]
    walks: list[list[str]] = field(default_factory=list)

    def was_walked(self, times: int) -> bool:
        """Tell whether the way has been walked so often."""
        return len(self.walks) >= times


OPEN = Way("POST /v1/device/open", lambda data: data.startswith(b"POST /v1/device/open"))
CARD = Way("a card from reader to gate", lambda data: data.strip().decode("latin-1") in CARDS_SENT)


class Watch:
    """The watch over the loop's thread: it profiles from a way's first byte until the command is written."""

    def __init__(self) -> None:
        self._way: Way | None = None
        self._files: dict[str, None] = {}

    def received(self, data: bytes) -> None:
        """Begin a walk when its first byte arrives."""
        way = next((way for way in (OPEN, CARD) if way.begins(data)), None)
        if way is not None and self._way is None:
            self._way, self._files = way, {}
            sys.setprofile(self._called)

    def wrote(self, data: bytes) -> None:
        """End the walk when a Modbus write has left."""
        if self._way is not None and len(data) > _MODBUS_HEADER and data[_MODBUS_HEADER] in _WRITES:
            sys.setprofile(None)
            self._way.walks.append(list(self._files))
            self._way = None

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PRODUCT):
            self._files.setdefault(file)


def observe(watch: Watch) -> None:
    """Tell the watch of the bytes that arrive at the interface and on lines, and of those that leave on lines."""

    def telling(method: Callable[..., Any], tell: Callable[[bytes], None], *, first: bool) -> Callable[..., Any]:
        @wraps(method)
        def told(self: object, data: bytes) -> Any:
            if first:
                tell(bytes(data))
            result = method(self, data)
            if not first:
                tell(bytes(data))
            return result

        return told

    Connection.received = telling(Connection.received, watch.received, first=True)  # type: ignore[method-assign]
    Connection.write = telling(Connection.write, watch.wrote, first=False)  # type: ignore[method-assign]
    RequestHandler.data_received = telling(  # type: ignore[method-assign]
        RequestHandler.data_received, watch.received, first=True
    )


def walk(port: int, control: str, rounds: int) -> None:
    """Walk both ways from outside, and end the gateway."""
    try:
        base = f"http://127.0.0.1:{port}"
        until(lambda: posted(f"{base}/v1/auth/login", {"username": ACCOUNT, "password": "demo"}))
        session = posted(f"{base}/v1/auth/login", {"username": ACCOUNT, "password": "demo"})["session"]
        for number in range(rounds):
            for way in (OPEN, CARD):
                seen = len(way.walks)
                if way is OPEN:
                    posted(f"{base}/v1/device/open", {"id": GATE}, SessionID=session)
                else:
                    posted(f"{control}/present", {"lane_id": LANE, "card": CARDS_SENT[number]})
                until(partial(way.was_walked, seen + 1))
                _PAUSE.wait(_BETWEEN)
                if way is OPEN:
                    posted(f"{base}/v1/device/close", {"id": GATE}, SessionID=session)
                    _PAUSE.wait(_BETWEEN)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds. Raises TimeoutError when it never does."""
    deadline = time.monotonic() + _WITHIN
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if condition():
                return
        _PAUSE.wait(0.1)
    raise TimeoutError("the gateway did not do what was asked of it within a minute")


def posted(url: str, body: dict[str, object], **headers: str) -> Any:
    """Post JSON, and return the answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 (loopback)
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 (loopback)
        return json.load(answer)


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Run the field and the gateway, walk both ways, and print their files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8, help="walks of each way")
    rounds = parser.parse_args().rounds
    observe(Watch())
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()) as log:
        folder = Path(name)
        words = [sys.executable, "-m", "simulation.demo.field", "--folder", name + "/field", "--no-traffic"]
        with subprocess.Popen([*words, "--central-port", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as far:
            ready = FieldReady.model_validate_json(far.stdout.readline() if far.stdout else b"")
            port = free_port()
            site = write_site(folder / "site", ready, port=port)
            add_account(folder / "data")
            threading.Thread(target=walk, args=(port, ready.control_url, rounds), daemon=True).start()
            sys.argv = ["gateway", str(site), "--data", str(folder / "data"), "--control", ready.control_url]
            try:
                demo_gateway.main()
            finally:
                far.terminate()
    if not (OPEN.walks and CARD.walks):
        sys.exit(f"no walk was seen; the gateway's log ends:\n{log.getvalue()[-2000:]}")
    for way in (OPEN, CARD):
        common = set.intersection(*(set(files) for files in way.walks))
        print(f"{way.name}: {len(common)} files in each of {len(way.walks)} walks")
        for file in way.walks[-1]:
            if file in common:
                print(f"  {Path(file).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
