"""`edge-gateway webhooks` against the running interface."""

from __future__ import annotations

import asyncio

from running_gateway import typed

SECRET = "s3cret-s3cret"


async def call(folder, *arguments):
    """Exit status and output, and that the secret is in none of it."""
    ended = await asyncio.to_thread(typed, "webhooks", *arguments, "--data", folder, cwd=folder)
    assert SECRET not in ended.stdout + ended.stderr
    return ended.returncode, ended.stdout, ended.stderr


async def test_webhooks_are_listed_tried_replayed_and_enabled(gateway, tmp_path):
    _, made = await gateway.program(
        "POST",
        "/api/v1/webhooks",
        {"url": f"{gateway.url}/v1/nowhere", "events": ["alert.triggered"], "secret": SECRET},
    )
    known = made["id"]
    listed, tried, replayed, enabled, unknown = await asyncio.gather(
        call(tmp_path, "list"),
        call(tmp_path, "test", known),
        call(tmp_path, "replay", known, "--since", "2026-01-31"),
        call(tmp_path, "enable", known),
        call(tmp_path, "enable", "wh_0"),
    )
    status, out, err = listed
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{known}  {gateway.url}/v1/nowhere  (enabled)"
    assert "0 waiting, 0 delivered, 0 failed, 0 dropped" in out
    assert tried == (1, "", f"edge-gateway: {known} did not accept the message: the receiver answered 404\n")
    assert replayed == (0, f"0 messages are sent to {known} again\n", "")
    assert enabled == (0, f"{known} is enabled; 0 messages wait for it\n", "")
    assert unknown == (1, "", "edge-gateway: the gateway refused: there is no webhook 'wh_0'\n")
