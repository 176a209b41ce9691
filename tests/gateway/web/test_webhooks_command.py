"""`edge-gateway webhooks` against the running interface."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("edge-gateway")
SECRET = "s3cret-s3cret"


async def call(folder, *arguments):
    """Exit status and output, and that the secret is in none of it."""
    program = await asyncio.create_subprocess_exec(
        PROGRAM, "webhooks", *arguments, "--site", "site.toml", "--user", "chief", cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "EDGE_GATEWAY_PASSWORD": "chief", "EDGE_GATEWAY_SECRET_CHIEF": "chief"},
    )  # fmt: skip
    out, err = await program.communicate()
    assert SECRET.encode() not in out + err
    return program.returncode, out.decode(), err.decode()


async def test_webhooks_are_listed_tried_replayed_and_enabled(house, tmp_path):
    port = house.url.rpartition(":")[2]
    accounts = '[[api.accounts]]\nusername = "chief"\npassword = "chief"\n'
    (tmp_path / "site.toml").write_text(f'[site]\nname = "North"\n[api]\nport = {port}\n{accounts}')
    status, out, err = await call(tmp_path, "list")
    assert (status, err) == (0, "")
    assert out.startswith("no webhooks")
    _, made = await house.program(
        "POST",
        "/api/v1/webhooks",
        {"url": f"{house.url}/v1/nowhere", "events": ["alert.triggered"], "secret": SECRET},
    )
    status, out, _ = await call(tmp_path, "list")
    assert status == 0
    assert out.splitlines()[0] == f"{made['id']}  {house.url}/v1/nowhere  (enabled)"
    assert "0 waiting, 0 delivered, 0 failed, 0 dropped" in out
    status, out, err = await call(tmp_path, "test", made["id"])
    assert (status, out) == (1, "")
    assert err == f"edge-gateway: {made['id']} took no message: the receiver answered 404\n"
    status, out, _ = await call(tmp_path, "replay", made["id"], "--since", "2026-01-31")
    assert (status, out) == (0, f"0 messages are sent to {made['id']} again\n")
    status, out, _ = await call(tmp_path, "enable", made["id"])
    assert (status, out) == (0, f"{made['id']} is enabled; 0 messages wait for it\n")
    status, _, err = await call(tmp_path, "enable", "wh_0")
    assert (status, err) == (1, "edge-gateway: the gateway refused: there is no webhook 'wh_0'\n")
