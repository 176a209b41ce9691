"""Shared records that the server lost, shows otherwise than it keeps them, or lets nobody change, and wrong clocks."""

from __future__ import annotations

import pytest
from at_work import running
from fleet_scene import connection
from nats.js.api import KeyValueConfig
from set_machine import PushedClock
from shared_area_scene import Member, sharing
from waiting import until

from gateway.domain.presence import Way
from gateway.domain.server_lines import ConnectionState
from gateway.fleet.names import AREAS_BUCKET, AREAS_STREAM, FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes.claims import ClaimOutcome


@pytest.fixture
def areas(areas, monkeypatch):
    """The server with the bucket, whose refusals are to be explained soon."""
    monkeypatch.setattr("gateway.lanes.shared_areas.SHOWN_WITHIN", 0.05)
    return areas


@pytest.mark.long("a silence of 6 s")
async def test_a_bucket_that_was_deleted_is_told_and_filled_again_once_it_is_there(areas, broker):
    one, two = Member("gate-1"), Member("gate-2")
    line = one.connection(areas.url)
    async with running(line.run(), two.connection(areas.url).run()):
        await until(lambda: not (one.shared.is_apart or two.shared.is_apart))
        one.passes("card:1")
        await until(lambda: two.presence.count("garage") == 1)
        await broker.jetstream().delete_stream(AREAS_STREAM)
        one.passes("card:2")
        await until(lambda: line.status().state is ConnectionState.REFUSED)
        assert "fleet prepare" in line.status().reason
        await broker.jetstream().create_key_value(KeyValueConfig(bucket=AREAS_BUCKET, direct=True))
        await until(lambda: not (one.shared.is_apart or two.shared.is_apart))
        await until(lambda: len(inside(two)) == 2 == two.presence.count("garage") and not one.shared.waits)
        await until(lambda: line.status().state is ConnectionState.CONNECTED)


def inside(member: Member) -> list[str]:
    return [holder for holder, place in member.presence.holders().items() if place.area_id == "garage"]


async def test_a_bucket_that_was_purged_by_hand_is_written_again(areas, broker):
    one, two = Member("gate-1", limit=5), Member("gate-2", limit=5)
    async with sharing(one, two, url=areas.url):
        one.passes("card:1")
        two.passes("card:2")
        await until(lambda: one.presence.count("garage") == 2 == two.presence.count("garage"))
        await broker.jetstream().purge_stream(AREAS_STREAM)
        one.passes("card:3")
        two.passes("card:4")
        await until(lambda: one.presence.count("garage") == 4 == two.presence.count("garage"))
        await until(lambda: not any(member.shared.waits or member.shared.is_apart for member in (one, two)))
        await until(lambda: all(len(inside(member)) == 4 for member in (one, two)))
        own, outcome = await one.claim("card:5")
        assert outcome is ClaimOutcome.CLAIMED
        one.shared.release(own.claim.id)
        await until(lambda: not one.shared.waits and not list(two.shared.coming()))


class Disagreeing:
    """A part at servers that refuse one holder's entry, whatever it was written against. `runs`: its connections."""

    name = "shared areas"

    def __init__(self, part: SharedAreasLine, holder: str) -> None:
        self._part = part
        self._holder = holder
        self.runs = 0

    async def run(self, line, works) -> None:
        self.runs += 1
        put_each = line.put_each

        async def put(messages, *, within):
            sent = [message for message in messages if not message.subject.endswith(self._holder)]
            stored = iter(await put_each(sent, within=within)) if sent else iter(())
            return tuple(next(stored) if message in sent else None for message in messages)

        line.put_each = put
        await self._part.run(line, works)


@pytest.mark.long("one connection after the other")
async def test_an_entry_that_servers_refuse_for_ever_leaves_the_others_their_line(areas):
    one, two = Member("gate-1"), Member("gate-2")
    part = Disagreeing(SharedAreasLine(fleet_name=FleetName("north", "gate-1"), shared=one.shared), "Y2FyZDox")
    line = connection(areas.url, part, name=FleetName("north", "gate-1"))
    async with running(line.run(), two.connection(areas.url).run()):
        await until(lambda: not one.shared.is_apart and not two.shared.is_apart)
        one.passes("card:1")
        await until(lambda: part.runs == 4)
        await until(lambda: one.shared.misled)
        for number in range(2, 5):
            one.passes(f"card:{number}")
            await until(lambda number=number: two.presence.whereabouts(f"card:{number}") is not None)
        assert part.runs == 4
        assert two.presence.count("garage") == 4
        assert (await one.claim("card:5"))[1] is ClaimOutcome.CLAIMED


@pytest.mark.parametrize("off", [-7200.0, 7200.0])
async def test_while_connected_the_order_is_that_of_the_passages_whatever_a_set_clock_says(areas, off):
    clock = PushedClock()
    one, two = Member("gate-1", clock=clock), Member("gate-2")
    async with sharing(one, two, url=areas.url):
        clock.stepped = off
        for _ in range(3):
            two.passes("card:1")
            await until(lambda: inside(one) and one.presence.count("garage") == 1)
            one.passes("card:1", Way(leaves="garage"))
            await until(lambda: two.presence.count("garage") == 0 and not (one.shared.waits or two.shared.waits))
            await until(lambda: not inside(one) and not inside(two))
        assert not one.told
        assert not two.told
