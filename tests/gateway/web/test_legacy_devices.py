"""Devices that programs register through the legacy family, at a site with a central: they can be removed again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from wired import down_sync, outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Faults
from tests.gateway.web.setups.site import CENTRAL, SITE

KIOSK = {"name": "Kiosk", "type": "kiosk"}


@pytest.fixture
def below(open_gateway, far_central):
    """Opens a gateway with a way to that central."""

    @asynccontextmanager
    async def opened():
        client = CentralClient(url=far_central.url, account=GatewayAccount("gateway", "gateway"), clock=SystemClock())
        far_central.tables.devices.put({**far_central.tables.devices.find(101), "id": 102, "name": "Entry reader"})
        site = SITE.model_copy(update={"central": CENTRAL.model_copy(update={"url": far_central.url})})
        try:
            async with open_gateway(client=client, site=site) as gateway:
                gateway.up = outbox_sender(client=client, store=gateway.store, clock=SystemClock())
                gateway.down = down_sync(client=client, store=gateway.store, clock=SystemClock())
                yield gateway
        finally:
            await client.close()

    return opened


async def gone_up(gateway):
    async with asyncio.timeout(30):
        while (await gateway.store.outbox.books()).waiting:
            await gateway.store.outbox.retry_now()
            await gateway.up.send_due()


async def registered(gateway):
    status, made = await gateway.program("POST", "/api/v1/devices", KIOSK)
    assert status == 201, made
    return made["id"]


async def names(gateway):
    _, listed = await gateway.program("GET", "/api/v1/devices")
    _, of_people = await gateway.call("/v1/device/list", {})
    found = [device["name"] for device in listed["devices"]]
    assert sorted(found) == sorted(device["name"] for device in of_people["devices"])
    assert listed["total"] == len(found)
    return found


async def test_one_that_central_has_is_removed_and_stays_so(below):
    async with below() as gateway:
        number = await registered(gateway)
        assert int(number) < FIRST_PROVISIONAL_ID
        status, removed = await gateway.program("DELETE", f"/api/v1/devices/{number}")
        assert (status, removed["name"]) == (200, "Kiosk")
        await gateway.down.pull()
        assert (await gateway.program("GET", f"/api/v1/devices/{number}"))[0] == 404
        assert (await gateway.program("DELETE", f"/api/v1/devices/{number}"))[0] == 404
        assert "Kiosk" not in await names(gateway)


async def test_one_whose_creation_waits_never_goes_up(below, far_central):
    async with below() as gateway:
        await far_central.stop()
        number = await registered(gateway)
        assert int(number) >= FIRST_PROVISIONAL_ID
        assert (await gateway.program("DELETE", f"/api/v1/devices/{number}"))[0] == 200
        assert (await gateway.program("GET", f"/api/v1/devices/{number}"))[0] == 404
        await far_central.start()
        await gone_up(gateway)
        await gateway.down.pull()
        assert "Kiosk" not in await names(gateway)
        assert "Kiosk" not in [device["name"] for device in far_central.tables.devices.values()]
        assert (await gateway.store.outbox.books()).balance()


async def test_one_that_may_have_reached_central_stays_removed_when_it_turns_up_there(below, far_central):
    async with below() as gateway:
        far_central.faults = Faults(lost_answers=1, paths="/v1/device")
        number = await registered(gateway)
        assert int(number) >= FIRST_PROVISIONAL_ID
        assert (await gateway.program("DELETE", f"/api/v1/devices/{number}"))[0] == 200
        far_central.faults = Faults()
        await gone_up(gateway)
        await gateway.down.pull()
        assert "Kiosk" in [device["name"] for device in far_central.tables.devices.values()]
        assert "Kiosk" not in await names(gateway)


async def test_one_that_went_up_later_is_removed_by_either_id(below, far_central):
    async with below() as gateway:
        await far_central.stop()
        first = await registered(gateway)
        second = await registered(gateway)
        await far_central.start()
        await gone_up(gateway)
        assert (await gateway.program("DELETE", f"/api/v1/devices/{first}"))[0] == 200
        now = (await gateway.program("GET", f"/api/v1/devices/{second}"))[1]["id"]
        assert now != second
        assert (await gateway.program("DELETE", f"/api/v1/devices/{now}"))[0] == 200
        assert "Kiosk" not in await names(gateway)


async def test_centrals_other_devices_are_not_removed_here(below):
    async with below() as gateway:
        _, made = await gateway.call("/v1/device", {"name": "By hand"}, method="PUT")
        status, answer = await gateway.program("DELETE", f"/api/v1/devices/{made['device']['id']}")
        assert (status, "was not registered through this gateway" in answer["error"]) == (409, True)


async def test_it_is_always_said_since_when_a_device_is_known(below, far_central):
    async with below() as gateway:
        await gateway.down.pull()
        await far_central.stop()
        number = await registered(gateway)
        made = (await gateway.program("GET", f"/api/v1/devices/{number}"))[1]["created_at"]
        await far_central.start()
        await gone_up(gateway)
        _, listed = await gateway.program("GET", "/api/v1/devices")
        for device in listed["devices"]:
            assert datetime.fromisoformat(device["created_at"]).year >= 2025, device
        assert datetime.fromisoformat(made).year >= 2025
