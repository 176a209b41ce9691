"""A program with a key: its grants open real gates, and what happens reaches its receiver, through a kill -9."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from forked import done

from gateway.domain.events import EventKind
from simulation.demo.scene import CARDS_SENT, LANES

pytestmark = pytest.mark.long("a running gateway with real far ends")

SECRET = "s3cret-of-the-system-tests"
EXPIRED = 11
"""A seeded card whose days are over, of customer 9003."""


class Inbox:
    """A receiver that keeps what came well signed; while `refuses`, it answers 503."""

    def __init__(self) -> None:
        self.bodies: list[dict] = []
        self.tries = 0
        self.refuses = False
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                proof = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
                inbox.tries += 1
                good = hmac.compare_digest(proof, self.headers["X-SERVICE-Signature"]) and not inbox.refuses
                if good:
                    inbox.bodies.append(json.loads(body))
                self.send_response(204 if good else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def of(self, kind: str, **data: str) -> list[dict]:
        return [one for one in self.bodies if one["type"] == kind and data.items() <= one["data"].items()]


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    thread = threading.Thread(target=inbox.server.serve_forever, args=(0.05,))
    thread.start()
    yield inbox
    inbox.server.shutdown()
    thread.join()
    inbox.server.server_close()


def program(site, key, method, path, body=None):
    status, answer, _ = site.api.raw(method, path, body, Authorization=f"Bearer {key}", SessionID="")
    return status, json.loads(answer)


def key_of(site) -> str:
    """A key for a program that may do all."""
    answer = done("gateway", "users", "key", "add", "till", "--may", "*", "--data", site.data)
    answer.check_returncode()
    return re.search(r"egk_\S+", answer.stdout)[0]


def test_a_program_lets_people_in_and_hears_of_it(make_site, wait_until, inbox):
    site = make_site(start=False)
    text = site.site.read_text()
    before, reader, after = text.rpartition('form = "wiegand26"')  # the exit's reader sends codes
    site.site.write_text(f'{before}form = "text"{after}\n[webhooks]\nprivate_receivers = ["127.0.0.1"]\n')
    assert reader
    site.start_gateway()
    key = key_of(site)
    entry, exit_ = (str(lane.gate) for lane in LANES[:2])
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=30, why="the cards come down")
    hook = {"url": inbox.url, "events": ["access.granted", "access.denied"], "secret": SECRET}
    assert program(site, key, "POST", "/api/v1/webhooks", hook)[0] == 201

    site.present("entry", CARDS_SENT[EXPIRED])
    wait_until(lambda: inbox.of("access.denied", user_id="9003"), within=20, why="the denial is told")
    status, _ = program(site, key, "POST", "/api/v1/access/grant", {"user_id": "9003", "device_id": entry})
    assert status == 200
    status, guest = program(
        site, key, "POST", "/api/v1/access/grant", {"user_id": "a guest", "device_id": exit_, "duration": "permanent"}
    )
    assert (status, guest["expires_at"]) == (200, None)

    inbox.refuses, before = True, inbox.tries
    site.present("exit", guest["access_id"])
    wait_until(lambda: inbox.tries > before, within=20, why="a try is refused")
    site.kill_gateway()
    inbox.refuses = False
    site.start_gateway()
    wait_until(lambda: inbox.of("access.granted", user_id="a guest"), within=40, why="it is told after the kill")

    site.present("entry", CARDS_SENT[EXPIRED])
    told = wait_until(lambda: inbox.of("access.granted", user_id="9003"), within=30, why="the grant opens")
    assert "a grant lets the holder pass" in told[0]["data"]["description"]
    assert program(site, key, "GET", "/api/v1/access/permissions")[1]["total"] == 2
    assert program(site, key, "POST", "/api/v1/access/revoke", {"access_id": guest["access_id"]})[0] == 200
    site.present("exit", guest["access_id"])
    where = {"device_id": exit_}
    wait_until(lambda: inbox.of("access.denied", **where), within=40, why="the code is worth nothing any more")
    log = site.log.read_text(errors="replace")
    assert SECRET not in log
    assert key not in log
