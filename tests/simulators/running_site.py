"""A simulated field and a gateway, each a process of its own, and the gateway's interface as any client sees it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from forked import Field, Forked
from free_ports import free_port
from waiting import wait_until

from simulation.demo.scene import add_account, write_site


class Api:
    """The gateway's interface as any client sees it."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""

    def raw(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if self.session:
            request.add_header("SessionID", self.session)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), dict(error.headers)

    def call(self, path: str, **body: object) -> dict[str, Any]:
        status, answer, _ = self.raw("POST", path, body)
        parsed = json.loads(answer)
        assert status == 200, (path, status, parsed)
        return parsed

    def sign_in(self) -> None:
        self.session = ""
        self.session = self.call("/v1/auth/login", username="demo", password="demo")["session"]

    def events(self, **wanted: object) -> list[dict[str, Any]]:
        return self.call("/v1/event/list", page_limit=200, **wanted)["events"]

    def camera_events(self) -> list[dict[str, Any]]:
        return self.call("/v1/camera/event/list", page_limit=200)["events"]

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return self.raw("GET", "/health/ready")[0] == 200
        return False


class RunningSite:
    """A simulated field and a gateway of its own, in a folder of its own."""

    def __init__(
        self, folder: Path, *words: str, traffic: bool = False, cards: int = 60, demo_page: bool = False
    ) -> None:
        """`words` are further options of the field."""
        self.folder = folder
        words = ("--folder", str(folder / "field"), "--cards", str(cards), *words)
        self.field = Field(*words, *(() if traffic else ("--no-traffic",)))
        self.ready = self.field.ready
        self.port = free_port()  # now that the field has taken its own
        self.api = Api(self.port)
        self.site = write_site(folder / "site", self.ready, port=self.port)
        self.data = folder / "data"
        demo = ("simulation.demo.gateway", "--control", self.ready.control_url)
        self.program = demo if demo_page else ("gateway", "run")
        self.log = folder / "gateway.log"
        self.gateway: Forked | None = None

    def start_gateway(self, **environment: str) -> None:
        self.spawn_gateway(**environment)
        wait_until(self.up, within=30, why=f"the gateway gets ready\n{self.tail()}")
        if not self.api.session:
            self.api.sign_in()

    def spawn_gateway(self, **environment: str) -> None:
        if not (self.folder / self.data / "site.db").exists():
            with ThreadPoolExecutor(1) as beside:  # a browser of this process has an event loop in this thread
                beside.submit(add_account, self.folder / self.data).result()
        with self.log.open("ab") as log:
            words = (*self.program, self.site, "--data", self.data)
            self.gateway = Forked(*words, output=log.fileno(), errors=log.fileno(), env={**os.environ, **environment})

    def up(self) -> bool:
        assert self.gateway is not None
        assert self.gateway.poll() is None, f"the gateway ended:\n{self.tail()}"
        return self.api.is_ready()

    def kill_gateway(self) -> None:
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait()

    def stop_gateway(self) -> int:
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGTERM)
        return self.gateway.wait(timeout=60)

    def lose_field(self) -> None:
        """Everything of the field goes at once, the names of its serial ports too, as a pulled plug's does.

        A name left behind would soon lead to another field's port: the kernel gives a terminal's number out again.
        """
        self.field.lose()
        for port in (self.folder / "field").rglob("*"):
            if port.is_symlink():
                port.unlink()

    def present(self, lane_id: str, card: str) -> None:
        body = json.dumps({"lane_id": lane_id, "card": card}).encode()
        request = urllib.request.Request(self.ready.control_url + "/present", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def workers(self) -> list[int]:
        """Process ids of the gateway's camera workers."""
        assert self.gateway is not None
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    if b"gateway.camera_worker" in words and parent == self.gateway.pid:
                        found.append(int(folder.name))
        return found

    def types_since(self, before: int) -> set[int]:
        """The types of events that came after an id."""
        return {event["type"] for event in self.api.events() if event["id"] > before}

    def newest(self) -> int:
        """The id of the newest event."""
        return int(self.api.events()[0]["id"])

    def central(self, path: str, **body: object) -> dict[str, Any]:
        """Ask the simulated central, as its own administrator would."""
        central = Api(0)
        central.base = self.ready.central_url
        central.session = central.call("/v1/auth/login", username="gateway", password="demo")["session"]
        return central.call(path, **body)

    def lane(self, lane_id: str) -> dict[str, Any]:
        """The lane as the page shows it just now: its last word needs no disk."""
        lanes = json.loads(self.api.raw("GET", "/status/now")[1])["snapshot"]["lanes"]
        return next(lane for lane in lanes if lane["lane_id"] == lane_id)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def close(self) -> None:
        try:
            if self.gateway is not None and self.gateway.poll() is None:
                self.gateway.terminate()
                try:
                    self.gateway.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    self.gateway.kill()
                    self.gateway.wait()
        finally:
            self.field.end()
