"""The scene of `outage_rounds`: a simulated field and a gateway as processes, and requests to either."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from running_site import RunningSite
from waiting import wait_until

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


class Scene(RunningSite):
    """A field and a gateway as processes, and how to speak with either."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        super().__init__(folder, "--central-keys", "--seed", str(seed), cards=CARDS)
        self.site.write_text(self.site.read_text().replace("pull_seconds = 5", "pull_seconds = 1"))
        self.session = ""

    def start(self) -> None:
        """Start the gateway and wait until it serves."""
        self.spawn_gateway()
        until(self._signed_in, "the gateway serves")

    def _signed_in(self) -> bool:
        assert self.gateway is not None
        assert self.gateway.poll() is None, f"the gateway ended:\n{self.tail()}"
        login = {"username": "demo", "password": "demo"}
        self.session = ask(self.api.base, "POST", "/v1/auth/login", login)["session"]
        return bool(self.session)

    def call(self, method: str, path: str, body: Any = None, *, form: bytes | None = None) -> Any:
        """Ask the gateway. Raises Gone."""
        return ask(self.api.base, method, path, body, session=self.session, form=form)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Ask central, past the line: its control routes always answer. Raises Gone."""
        return ask(self.ready.central_url, method, path, body)

    def at_central(self, method: str, path: str, body: Any) -> Any:
        """Ask central as its own people do. Raises Gone."""
        login = {"username": "gateway", "password": "demo"}
        session = ask(self.ready.central_url, "POST", "/v1/auth/login", login)["session"]
        return ask(self.ready.central_url, method, path, body, session=session)

    def books(self) -> dict[str, int]:
        """The outbox's books, as the page shows them. Raises Gone."""
        return ask(self.api.base, "GET", "/status/now", session=self.session)["snapshot"]["books"] or {}
