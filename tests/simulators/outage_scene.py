"""The scene of `outage_rounds`: a simulated field and a gateway as processes, and requests to either."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forked import Field, Forked
from free_ports import free_port
from waiting import wait_until

from simulation.demo.scene import add_account, write_site

GENEROUS = 120.0
CARDS = 30


class Gone(Exception):
    """Nobody answered, or not with what was asked for."""


def ask(base: str, method: str, path: str, body: Any = None, *, session: str = "", form: bytes | None = None) -> Any:
    """An operation's answer. Raises Gone."""
    data, kind = (form, "multipart/form-data; boundary=part") if form is not None else (None, "application/json")
    if body is not None:
        data = json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, method=method, headers={"Content-Type": kind})
    if session:
        request.add_header("SessionID", session)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        said = error.read()[:200] if isinstance(error, urllib.error.HTTPError) else b""
        raise Gone(f"{method} {path}: {error} {said!r}") from error


def until(what: Callable[[], Any], why: str, *, within: float = GENEROUS) -> Any:
    """Ask again until the answer is true; nobody answers while the gateway is gone."""

    def answer() -> Any:
        with contextlib.suppress(Gone):
            return what()

    return wait_until(answer, why, within=within)


class Scene:
    """A field and a gateway as processes, and how to speak with either."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder = folder
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        words = ["--folder", str(folder / "field"), "--cards", str(CARDS), "--no-traffic", "--seed", str(seed)]
        with (folder / "field.log").open("ab") as log:
            self.field = Field(*words, "--central-keys", errors=log.fileno())
        self.ready = self.field.ready
        self.site = write_site(folder / "site", self.ready, port=port)
        self.site.write_text(self.site.read_text().replace("pull_seconds = 5", "pull_seconds = 1"))
        self.data = folder / "data"
        add_account(self.data)
        self.log = folder / "gateway.log"
        self.gateway: Forked | None = None
        self.session = ""

    def start(self) -> None:
        """Start the gateway and wait until it serves."""
        with self.log.open("ab") as log:
            words = ("gateway", "run", self.site, "--data", self.data)
            self.gateway = Forked(*words, output=log.fileno(), errors=log.fileno())
        until(self._signed_in, "the gateway serves")

    def _signed_in(self) -> bool:
        assert self.gateway is not None
        assert self.gateway.poll() is None, f"the gateway ended:\n{self.tail()}"
        self.session = ask(self.base, "POST", "/v1/auth/login", {"username": "demo", "password": "demo"})["session"]
        return bool(self.session)

    def kill(self) -> None:
        """kill -9."""
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait()

    def stop(self) -> None:
        """End in order."""
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGTERM)
        assert self.gateway.wait(timeout=GENEROUS) == 0, self.tail()

    def call(self, method: str, path: str, body: Any = None, *, form: bytes | None = None) -> Any:
        """Ask the gateway. Raises Gone."""
        return ask(self.base, method, path, body, session=self.session, form=form)

    def central(self, method: str, path: str, body: Any = None) -> Any:
        """Ask central, past the line: its control routes always answer. Raises Gone."""
        return ask(self.ready.central_url, method, path, body)

    def at_central(self, method: str, path: str, body: Any) -> Any:
        """Ask central as its own people do. Raises Gone."""
        login = {"username": "gateway", "password": "demo"}
        session = ask(self.ready.central_url, "POST", "/v1/auth/login", login)["session"]
        return ask(self.ready.central_url, method, path, body, session=session)

    def books(self) -> dict[str, int]:
        """The outbox's books, as the page shows them. Raises Gone."""
        return ask(self.base, "GET", "/status/now", session=self.session)["snapshot"]["books"] or {}

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def close(self) -> None:
        """End whatever still runs."""
        if self.gateway is not None and self.gateway.poll() is None:
            self.gateway.kill()
            self.gateway.wait()
        self.field.end()
