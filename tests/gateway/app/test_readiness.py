"""The whole house over HTTP: it is ready while its lanes can admit vehicles and let them out, and not otherwise."""

from __future__ import annotations

import aiohttp
import pytest
from far_end_site import a_barrier
from running_gateway import give_account
from running_house import CHIEF, running
from waiting import until

from gateway.domain.events import Event, EventKind
from gateway.domain.travels import TRAVEL_SECONDS
from gateway.store import Entry, Store
from simulation.far_ends.line_devices import Misbehaviour


@pytest.mark.usefixtures("frequent_reports", "soon_lost")
async def test_ready_is_503_with_the_lane_named_while_it_cannot_work(tmp_path):
    give_account(tmp_path / "data")
    async with a_barrier() as (_, far_end, port), running(tmp_path, port) as url, aiohttp.ClientSession() as client:

        async def ready(status: int) -> list[str]:
            async def answered():
                async with client.get(f"{url}/health/ready", headers=headers) as answer:
                    return await answer.json() if answer.status == status else None

            return (await until(answered))["not_ready"]

        async def is_all_silent() -> bool:
            return await ready(503) == ["Entry cannot work: no unit answers on line g; on it: B, L"]

        async with client.post(f"{url}/v1/auth/login", json=CHIEF) as answer:
            headers = {"SessionID": (await answer.json())["session"]}
        assert await ready(200) == []
        far_end.misbehave(2, Misbehaviour(deaf=True))
        (why,) = await ready(503)
        assert why.startswith("Entry cannot work: L does not answer")
        far_end.misbehave(1, Misbehaviour(deaf=True))
        await until(is_all_silent)
        far_end.misbehave(1)
        far_end.misbehave(2)
        assert await ready(200) == []


async def kept_travels(folder, *seconds):
    """Keep as many openings of the lane's gate as if it had made them before."""
    data = folder / "data"
    data.mkdir()
    store = Store(folder=data, site_name="Small", sends=False)
    await store.open()
    for number, one in enumerate(seconds):
        facts = {TRAVEL_SECONDS: one}
        event = Event(EventKind.GATE_OPENED, number, clock_trusted=True, text="", lane_id="entry", data=facts)
        await store.journal.record(Entry(events=(event,)))
    await store.close()


async def test_a_gate_that_became_slower_is_a_problem(tmp_path):
    await kept_travels(tmp_path, *[3.0] * 40, *[4.8] * 5)
    give_account(tmp_path / "data")
    async with a_barrier() as (_, _, port), running(tmp_path, port) as url, aiohttp.ClientSession() as client:
        async with client.post(f"{url}/v1/auth/login", json=CHIEF) as answer:
            headers = {"SessionID": (await answer.json())["session"]}

        async def found():
            async with client.get(f"{url}/health/ready", headers=headers) as answer:
                return [one for one in (await answer.json())["problems"] if one["kind"] == "gate_slower"]

        (slower,) = await until(found)
        assert slower["text"] == (
            "Entry: the gate opens more slowly than it used to: its last 5 took 4.8 s; 3 s is normal, up to 3 s"
        )
        assert (slower["severity"], slower["lanes"]) == ("warning", [])
