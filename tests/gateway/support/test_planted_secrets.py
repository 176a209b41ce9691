"""Secrets that were planted are in no file of the data folder and in no line of the log."""

from __future__ import annotations

import asyncio
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from running_gateway import RunningGateway

from tests.gateway.support.test_bundle import OSDP_KEY, PASSWORD, QUERY, RTSP, SECRETS, SITE, TOKEN

GUESS = "Guess-me-not-99"


def asked(port: int, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, object]]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers)
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except HTTPError as error:
        with error:
            return error.code, {}


def used(port: int) -> str:
    """Sign in, guess, and call with secrets in places where they do not belong; the session."""
    _, told = asked(port, "/v1/auth/login", {"username": "chief", "password": PASSWORD})
    session = str(told["session"])
    asked(port, "/v1/auth/login", {"username": "chief", "password": GUESS})
    asked(port, f"/v1/device/list?token={TOKEN}&password={PASSWORD}", {}, SessionID=TOKEN)
    asked(port, "/v1/access", {"id": "x", "pin": GUESS, "password": RTSP}, SessionID=session)
    asked(port, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert asked(port, "/v1/device/list", {}, SessionID=session)[0] == 200
    return session


async def test_no_database_and_no_log_has_what_was_planted(tmp_path):
    own_line = SITE.replace("serial:/dev/serial/by-id/", f"serial:{tmp_path}/")  # one gateway alone may have a line
    (tmp_path / "site.toml").write_text(own_line)
    with RunningGateway(tmp_path, "--data", "data", **SECRETS) as running:
        port = await asyncio.to_thread(running.serves)
        session = await asyncio.to_thread(used, port)
        await asyncio.to_thread(running.hears, r'"event": "camera_worker_started"')
        assert await asyncio.to_thread(running.end) == 0
    files = {path.name: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert len(files["site.db"]) > 10_000
    files["log"] = running.heard.encode()
    planted = (PASSWORD, RTSP, OSDP_KEY, QUERY, TOKEN, GUESS, session)
    found = [(name, secret) for name, text in files.items() for secret in planted if secret.encode() in text]
    found += [(name, "the key's bytes") for name, text in files.items() if bytes.fromhex(OSDP_KEY) in text]
    assert found == []
