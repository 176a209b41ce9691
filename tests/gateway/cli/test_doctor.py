"""`edge-gateway doctor`, beside a gateway that runs."""

from __future__ import annotations

import asyncio
import json

from running_gateway import SITE, typed
from running_house import at_work

from gateway.runtime import landlock


async def test_doctor_lists_what_is_wrong_with_what_to_do(tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    async with at_work(tmp_path, tmp_path / "data", {}) as gateway:
        await gateway.serves()
        shown = await asyncio.to_thread(typed, "doctor", "--data", tmp_path / "data")
        asked = await asyncio.to_thread(typed, "doctor", "--data", tmp_path / "data", "--json")
    verdict = json.loads(asked.stdout)
    assert shown.stdout.splitlines()[0] == verdict["headline"]
    assert asked.returncode == shown.returncode == (1 if verdict["problems"] else 0)
    for problem in verdict["problems"]:
        assert problem["title"] in shown.stdout
        assert f"  1. {problem['steps'][0]}" in shown.stdout
        assert problem["since"] not in shown.stdout  # people read the site's time
    assert ("has no Landlock" in shown.stdout) == (landlock.version() == 0)


def test_doctor_without_a_gateway_says_so(tmp_path):
    done = typed("doctor", "--data", tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(f"edge-gateway: no gateway answers at {tmp_path}: start it, look in its log, or say ")
