"""Commissioning at the page: steps are judged, and the record is signed, kept and told."""

from __future__ import annotations

import json
import re
from base64 import b64decode

import pytest
import pytest_asyncio
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from page_visitor import sign_in
from playwright.async_api import expect

from gateway.domain.events import EventKind

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


async def ask(gateway, what, body=None):
    method = "GET" if body is None else "POST"
    status, answer = await gateway.call(f"/status/commissioning/{what}", body, method=method)
    return status, answer.get("commissioning") or answer


async def test_a_record_is_refused_while_a_step_waits_and_signed_when_none_does(gateway):
    lane = {"lane_id": "entry"}
    status, answer = await ask(gateway, "finish", lane)
    assert (status, answer["error"]) == (409, "nobody has begun to commission this lane: begin first")
    _, begun = await ask(gateway, "begin", lane)
    assert {step["outcome"] for step in begun["steps"]} == {"waiting"}
    first = begun["steps"][0]
    status, answer = await ask(gateway, "finish", lane)
    assert status == 409
    assert first["title"] in answer["error"]
    status, answer = await ask(gateway, "judge", {**lane, "step": "dance", "passed": True})
    assert (status, answer["error"]) == (404, "lane entry has no step 'dance'")
    for step in begun["steps"]:
        wanted = {**lane, "step": step["name"], "passed": step is not first, "note": "it shakes"}
        status, now = await ask(gateway, "judge", wanted)
        assert status == 200
    assert now["is_complete"]
    _, done = await ask(gateway, "finish", {**lane, "note": "ready for the rain"})
    assert (done["begun"], done["steps"]) == (None, [])
    record = done["records"][0]
    assert (record["note"], record["steps"][0]["outcome"]) == ("ready for the rain", "failed")
    event = await gateway.store.events.newest(types=(EventKind.LANE_COMMISSIONED,), lane_id="entry")
    count = len(begun["steps"])
    assert event.description == f"lane commissioned: {count - 1} of {count} steps passed"
    assert json.loads(event.data)["record"] == record["file"]


async def test_the_file_is_signed_by_the_sites_key(gateway):
    await ask(gateway, "begin", {"lane_id": "entry"})
    _, begun = await ask(gateway, "lane/entry")
    for step in begun["steps"]:
        await ask(gateway, "judge", {"lane_id": "entry", "step": step["name"], "passed": True})
    _, done = await ask(gateway, "finish", {"lane_id": "entry"})
    status, kept = await gateway.call(f"/status/commissioning/file/{done['records'][0]['file']}", method="GET")
    assert status == 200
    key = load_pem_public_key(kept["public_key"].encode())
    signed = json.dumps(kept["record"], sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    key.verify(b64decode(kept["signature"]), signed)
    with pytest.raises(InvalidSignature):
        key.verify(b64decode(kept["signature"]), signed.replace(b"passed", b"failed"))
    for name in ("none.json", "..%2Fsite_key.pem"):
        status, _ = await gateway.call(f"/status/commissioning/file/{name}", method="GET")
        assert status == 404, name


async def test_a_technician_judges_each_step_and_signs(gateway, browser_page):
    async with browser_page(tolerate=("409",)) as page:
        await sign_in(page, gateway, view="lanes/entry")
        await page.get_by_role("link", name="Commissioning").click()
        await expect(page.get_by_role("heading", name="Commissioning of Main entry")).to_be_visible()
        await page.get_by_role("button", name=re.compile("^Begin")).click()
        steps = page.locator("#commissioning-steps > li")
        await expect(steps.first).to_contain_text("The gate opens")
        await expect(page.get_by_role("button", name="Sign the record")).to_be_disabled()
        for number in range(await steps.count()):
            await steps.nth(number).get_by_role("button", name="Passed").click()
            await page.locator("#ask-field").fill("seen")
            await page.locator("#ask-yes").click()
            await expect(steps.nth(number).locator(".pill")).to_have_text("Passed")
        await expect(steps.first).to_contain_text("seen · judged by")
        await page.get_by_role("button", name="Sign the record").click()
        await page.locator("#ask-yes").click()
        await expect(page.locator("#commissioning-records summary").first).to_contain_text("steps passed; signed by")
        await expect(steps).to_have_count(0)


async def test_who_may_not_command_the_gate_sees_no_steps(gateway, browser_page):
    async with browser_page(tolerate=("409",)) as page:
        await sign_in(page, gateway, "guard", view="commissioning/entry")
        await expect(page.locator("#commissioning-title")).to_be_visible()
        await expect(page.locator("#no-commissioning")).to_be_visible()
        await expect(page.locator("#commissioning-parts")).to_be_hidden()


async def test_a_lane_that_there_is_not_has_no_heading(gateway, browser_page):
    async with browser_page(tolerate=("404", "409")) as page:
        await sign_in(page, gateway, view="commissioning/nowhere")
        await expect(page.locator("#no-commissioning")).to_be_visible()
        await expect(page.locator("#commissioning-title")).to_be_hidden()
