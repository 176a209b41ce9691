"""Settings in a real browser, over the whole house: edits of the site file, on trial until somebody confirms them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from changing_site import a_house
from page_visitor import sign_in
from playwright.async_api import expect
from running_gateway import PASSWORD

from gateway.domain.events import EventKind
from gateway.site import running_site

pytestmark = [pytest.mark.long("a real browser"), pytest.mark.asyncio(loop_scope="module")]
PHONE = {"width": 360, "height": 740}


@dataclass
class Served:
    """The house with its address."""

    house: object
    url: str


@pytest_asyncio.fixture(loop_scope="module")
async def site(tmp_path):
    async with a_house(tmp_path) as house:
        await house.sees(lambda: house.services.interface.port)
        yield Served(house, f"http://127.0.0.1:{house.services.interface.port}")


async def called(site, path, body=None, *, username="chief"):
    async with aiohttp.ClientSession() as client:
        signed = await client.post(f"{site.url}/v1/auth/login", json={"username": username, "password": PASSWORD})
        headers = {"SessionID": (await signed.json())["session"]}
        ask = client.get if body is None else client.post
        async with ask(
            f"{site.url}/status/settings/{path}", headers=headers, **({"json": body} if body else {})
        ) as answer:
            return answer.status, await answer.json()


async def told(house, kind):
    assert await house.gateway.lanes.recorder.drained(within=10)
    return [event for event in await house.gateway.store.events.latest(limit=200) if event.type == kind]


async def test_a_hold_open_time_is_changed_and_kept(site, browser_page):
    async with browser_page(size=PHONE) as page:
        await sign_in(page, site, view="settings", password=PASSWORD)
        lane = page.get_by_role("group", name="entry")
        await lane.get_by_label("Held open until an alarm").fill("90")
        await page.get_by_role("button", name="Show what changes").click()
        await expect(page.get_by_role("list", name="What would change")).to_contain_text(
            "lane entry (entry lane): changed held_open_seconds"
        )
        assert "held_open_seconds = 90" not in site.house.path.read_text()
        await page.get_by_role("button", name="Apply for a minute").click()
        await expect(page.locator("#settings-trial-title")).to_have_text(
            re.compile(r"^On trial: 5\d s$")
        )  # it counts down
        await page.get_by_role("button", name="Keep the change").click()
        await expect(page.locator("#toasts")).to_contain_text("The change is kept.")
        await expect(page.get_by_role("button", name="Keep the change")).to_be_hidden()
    text = site.house.path.read_text()
    assert "# how long the gate may stand open\nheld_open_seconds = 90\n" in text
    assert text.startswith("# The site of the tests\n")
    (changed,) = await told(site.house, EventKind.SITE_CHANGED)
    assert '"by":"user:chief"' in changed.data.replace(": ", ":")
    assert len(await told(site.house, EventKind.SITE_CHANGE_CONFIRMED)) == 1


async def test_the_site_file_is_shown_as_it_is_in_french_too(site, browser_page):
    site.house.path.write_text(f"{site.house.path.read_text()}\n# unit = 1, Open, entry\n")
    async with browser_page(language="fr") as page:
        await sign_in(page, site, view="settings", password=PASSWORD)
        lines = page.locator("#settings-lines code")
        await expect(lines.last).to_have_text("# unit = 1, Open, entry")
        shown = [line.strip() for line in await lines.all_text_contents()]
    written = [line.strip() for line in site.house.path.read_text().splitlines()]
    assert [line for line in shown if "password" not in line] == [line for line in written if "password" not in line]


async def test_a_name_and_a_holiday_return_by_themselves(site, browser_page, monkeypatch):
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 5.0)
    before = site.house.path.read_bytes()
    async with browser_page(tolerate=("net::ERR_",)) as page:  # the interface starts anew with the site's name
        await sign_in(page, site, view="settings", password=PASSWORD)
        await page.get_by_text("Site", exact=True).click()
        await page.locator('[data-section="site"]').get_by_label("Name").fill("Renamed")
        await page.get_by_text("Holidays").click()
        await page.get_by_label("Date of the holiday").fill("2027-12-25")
        await page.get_by_role("button", name="New holiday").click()
        await page.get_by_role("group", name="2027-12-25").get_by_label("Name").fill("Christmas")
        await page.get_by_role("button", name="Show what changes").click()
        changes = page.get_by_role("list", name="What would change")
        await expect(changes).to_contain_text("holiday 2027-12-25 (Christmas) was added")
        await page.get_by_role("button", name="Apply for a minute").click()
        await site.house.sees(lambda: site.house.services.site.site.name == "Renamed")
        await site.house.sees(lambda: site.house.services.site.site.name == "Small")
        await expect(page.locator("#site")).to_have_text("Small")
    assert site.house.path.read_bytes() == before


async def test_a_reader_that_is_not_seen_to_read_is_named_while_its_change_is_on_trial(site, browser_page):
    site.house.edit("serial:/dev/no-such-port-entry", "serial:/dev/no-such-port-elsewhere")
    await site.house.site_file.reload(by="user:chief", asks_person=True)
    async with browser_page(language="fr") as page:
        await sign_in(page, site, view="settings", password=PASSWORD)
        await expect(page.locator("#settings-trial-unseen li")).to_have_text(
            "Reader entry n'a encore rien lu\u00a0: présentez-lui une carte"
        )
        await page.get_by_role("button", name="Garder le changement").click()
        await expect(page.locator("#toasts")).to_contain_text("Reader entry n'a encore rien lu")


async def test_faults_stand_at_their_lines_and_secrets_nowhere(site, browser_page):
    site.house.edit("[storage]", '[rtsp]\nusername = "screen"\npassword = "hunter2"\n[storage]')
    async with browser_page() as page:
        await sign_in(page, site, view="settings", password=PASSWORD)
        await expect(page.locator(".file .faulty")).to_contain_text('password = "…"')
        await expect(page.get_by_text("mend them in the file first")).to_be_visible()
        assert "hunter2" not in await page.content()
    _, answer = await called(site, "file")
    assert "hunter2" not in str(answer).replace(PASSWORD, "")


async def test_accounts_by_the_rules_of_the_register(site, browser_page):
    async with browser_page(tolerate=("409",)) as page:
        await sign_in(page, site, view="settings", password=PASSWORD)
        await page.get_by_text("Accounts", exact=True).click()
        form = page.locator("#account-add")
        await form.get_by_label("User name").fill("ada")
        await form.get_by_label("Password").fill("short")
        await form.get_by_label("Role").select_option("operator")
        await form.get_by_role("button").click()
        await expect(page.locator("#account-fault")).to_contain_text("8 to 1000 characters")
        await form.get_by_label("Password").fill(PASSWORD)
        await form.get_by_role("button").click()
        rows = page.get_by_role("list", name="Accounts").get_by_role("listitem")
        await expect(rows).to_have_count(2)
        await expect(rows.filter(has_text="ada")).to_contain_text("operator, without a second factor")
        await page.get_by_role("button", name="Disable: ada").click()
        await expect(rows.filter(has_text="ada")).to_contain_text("may not sign in")
    (_, added, _) = await told(site.house, EventKind.ACCOUNT_CHANGED)  # the oldest adds the account that signs in
    assert added.description == "chief: The account ada was added, with the role operator."
    assert PASSWORD not in added.description + added.data


async def test_the_interface_renames_a_device_in_the_site_file(site):
    house = site.house
    runner, driver = house.runner("entry"), house.gateway.field.field.gates[101]
    async with aiohttp.ClientSession() as client:
        signed = await client.post(f"{site.url}/v1/auth/login", json={"username": "chief", "password": PASSWORD})
        headers = {"SessionID": (await signed.json())["session"]}

        async def configure(**fields):
            body = {"id": 101, **fields}
            async with client.patch(f"{site.url}/v1/device/config", headers=headers, json=body) as answer:
                return answer.status, await answer.json()

        status, answer = await configure(type="another")
        assert (status, answer["error"]) == (409, "type: the site file says what it is for device 101")
        status, answer = await configure(name="North barrier")
        assert (status, answer["device"]["name"]) == (200, "North barrier")
        status, answer = await configure(name="South barrier")
        assert (status, "under way" in answer["error"]) == (409, True)
        assert (await house.site_file.outcome()).confirmed
        by_hand = house.edit("held_open_seconds = 60", "held_open_seconds = 90")
        status, answer = await configure(name="South barrier")
        assert (status, "not in force" in answer["error"]) == (409, True)
        assert house.path.read_bytes() == by_hand
        assert house.runner("entry").rules.lane.held_open_seconds == 60
    assert house.path.read_text().count('name = "North barrier"') == 1
    assert house.device(101).name == "North barrier"
    assert house.runner("entry") is not runner  # its safety point is told by the name of its device
    assert house.gateway.field.field.gates[101] is driver
    (changed,) = await told(house, EventKind.SITE_CHANGED)
    assert "user:chief" in changed.data


async def test_only_an_administrator_may_and_a_file_of_before_is_refused(site, browser_page):
    await called(site, "account", {"do": "add", "username": "ada", "password": PASSWORD, "role": "operator"})
    for path, body in (("file", None), ("accounts", None), ("apply", {"digest": "x"}), ("decide", {"keep": True})):
        _, answer = await called(site, path, body, username="ada")
        assert answer["error"] == "permission denied: this needs every permission", path
    status, answer = await called(site, "apply", {"digest": "x"})
    assert (status, "meanwhile" in answer["error"]) == (409, True)
    status, _ = await called(site, "decide", {"keep": True})
    assert status == 409
    _, shown = await called(site, "file")
    edit = {"section": "lanes", "id": "entry", "values": {"gate": 7}}
    status, answer = await called(site, "apply", {"digest": shown["settings"]["digest"], "edits": [edit]})
    assert (status, "edited in the file itself" in answer["error"]) == (409, True)
    async with browser_page() as page:
        await sign_in(page, site, "ada", password=PASSWORD)
        await page.locator("#user summary").click()
        await expect(page.get_by_role("link", name="Settings")).to_be_hidden()
