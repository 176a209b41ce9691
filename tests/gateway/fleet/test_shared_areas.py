"""Areas that gateways share, at a real server: claims, a server that hangs or is gone, and what is merged then."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from at_work import running
from far_end_site import a_barrier, alive
from fleet_scene import connection
from shared_area_scene import INWARD, Member, sharing
from waiting import until

from gateway.domain.credentials import Card, text_alias
from gateway.domain.events import EventKind
from gateway.domain.presence import CountCorrection, Forgiveness, Presence, Whereabouts
from gateway.fleet.names import FleetName
from gateway.fleet.shared_areas import SharedAreasLine
from gateway.lanes.claims import ClaimOutcome


def all_told(*members: Member) -> bool:
    return not any(member.shared.waits for member in members) and not list(members[-1].shared.coming())


async def test_one_holder_is_let_in_by_one_gateway(areas):
    one, two = Member("gate-1"), Member("gate-2")
    async with sharing(one, two, url=areas.url):
        outcomes = [found[1] for found in await asyncio.gather(one.claim("card:1"), two.claim("card:1"))]
        assert sorted(outcomes) == [ClaimOutcome.CLAIMED, ClaimOutcome.OVERTAKEN]
        (claimed,) = (member for member, outcome in zip((one, two), outcomes, strict=True) if outcome == "claimed")
        other = two if claimed is one else one
        await until(lambda: [coming.lane_id for coming in other.shared.coming()] == [claimed.name])
        claimed.passes("card:1")
        await until(lambda: other.presence.whereabouts("card:1") is not None and not list(other.shared.coming()))
        assert other.presence.whereabouts("card:1").area_id == "garage"
        assert other.presence.count("garage") == 1


async def test_the_last_places_are_given_once(areas):
    members = [Member(f"gate-{number}", limit=5) for number in range(1, 5)]
    async with sharing(*members, url=areas.url):
        asked = (member.claim(f"card:{number}") for number in range(3) for member in members[number:])
        outcomes = [outcome for _, outcome in await asyncio.gather(*asked)]
        granted = [f"card:{100 + number}" for number in range(12)]
        more = await asyncio.gather(*(members[n % 4].claim(name) for n, name in enumerate(granted)))
        assert outcomes.count(ClaimOutcome.CLAIMED) == 3
        assert [outcome for _, outcome in more].count(ClaimOutcome.CLAIMED) <= 2
        assert ClaimOutcome.FULL in [outcome for _, outcome in more]


async def test_a_claim_that_nobody_used_is_given_back(areas):
    one, two = Member("gate-1", limit=1), Member("gate-2", limit=1)
    async with sharing(one, two, url=areas.url):
        own, outcome = await one.claim("card:1")
        assert outcome is ClaimOutcome.CLAIMED
        await until(lambda: list(two.shared.coming()))
        assert (await two.claim("card:2"))[1] is ClaimOutcome.FULL
        one.shared.release(own.claim.id)
        await until(lambda: not list(two.shared.coming()))
        assert (await two.claim("card:2"))[1] is ClaimOutcome.CLAIMED


async def test_a_server_that_hangs_is_waited_for_once_and_its_late_answer_gives_no_claim(areas):
    one, two = Member("gate-1", limit=1, claim_seconds=0.15), Member("gate-2", limit=1)
    async with sharing(one, two, url=areas.url):
        areas.hang()
        try:
            began = one.clock.monotonic()
            own, outcome = await one.claim("card:1")
            assert outcome is ClaimOutcome.AWAY
            assert one.clock.monotonic() - began >= one.claim_seconds
            assert await one.claim("card:2") == (None, ClaimOutcome.AWAY), "nobody waits a second time"
            one.shared.release(own.claim.id)
        finally:
            areas.wake()
        await until(lambda: not one.shared.is_apart)

        async def is_free() -> bool:
            return (await two.claim("card:3"))[1] is ClaimOutcome.CLAIMED

        await until(is_free)


async def test_both_sides_of_a_cut_are_merged_and_contradictions_are_told(areas):
    one, two = Member("gate-1", limit=2), Member("gate-2", limit=2)
    async with sharing(one, two, url=areas.url):
        one.passes("card:1")
        await until(lambda: all_told(one, two) and two.presence.count("garage") == 1)
        areas.kill()
        try:
            await until(lambda: one.shared.is_apart and two.shared.is_apart)
            two.passes("card:1", INWARD.back, at=2_000_000_000_000_000)
            one.passes("card:2", at=2_000_000_000_000_000)
            two.passes("card:2", at=2_000_000_001_000_000)
            two.passes("card:3")
            two.passes("card:4")
        finally:
            areas.start()
        await until(lambda: not (one.shared.is_apart or two.shared.is_apart) and all_told(one, two))
        await until(lambda: one.presence.count("garage") == two.presence.count("garage") == 4)
        assert one.presence.whereabouts("card:1") == Whereabouts("", 2_000_000_000_000_000)
        (told,) = one.told + two.told
        assert told[0] == "card:2"
        assert not told[1].is_certain, "a second lies between, which clocks may differ by"
        await until(lambda: one.overfull + two.overfull)


async def test_after_a_kill_the_disk_tells_what_the_others_lack(areas):
    one, two = Member("gate-1", limit=5), Member("gate-2", limit=5)
    async with sharing(one, two, url=areas.url):
        await one.claim("card:1")
        await one.claim("card:2")
        await until(lambda: len(list(two.shared.coming())) == 2)
        now = one.clock.wall().micros
        on_disk = Presence(counts={"garage": 1}, holders=[("card:1", Whereabouts("garage", now))])
    again = Member("gate-1", limit=5, presence=on_disk)
    async with sharing(again, two, url=areas.url):
        await until(lambda: two.presence.whereabouts("card:1") == Whereabouts("garage", now))
        await until(lambda: [coming.holder for coming in two.shared.coming()] == ["card:2"])
        assert two.presence.count("garage") == 1
        again.passes("card:2")
        await until(lambda: all_told(again, two) and two.presence.count("garage") == 2)


async def test_corrections_are_shared(areas):
    one, two = Member("gate-1"), Member("gate-2")
    async with sharing(one, two, url=areas.url):
        for holder in ("card:1", "card:2"):
            one.passes(holder)
        await until(lambda: all_told(one, two) and two.presence.count("garage") == 2)
        correction = CountCorrection("garage", 7, two.presence.elsewhere("garage"))
        two.presence.correct(correction)
        two.shared.corrected(correction)
        await until(lambda: one.presence.count("garage") == 7)
        two.presence.correct(Forgiveness("card:1"))
        two.shared.corrected(Forgiveness("card:1"))
        await until(lambda: one.presence.whereabouts("card:1") is None)
        assert one.presence.whereabouts("card:2") is not None
        one.presence.correct(Forgiveness())
        one.shared.corrected(Forgiveness())
        await until(lambda: two.presence.whereabouts("card:2") is None)


AREA = {"id": "garage", "name": "Garage", "limit": 3, "anti_passback": "hard", "shared": True}
CARDS = tuple(Card(number, str(number), aliases=(text_alias(str(number)),)) for number in (1, 2))


@asynccontextmanager
async def a_lane(folder, url: str, *, claim_ms: int = 2000, **area):
    """A lane into the shared area, with a real driver, and its connection."""
    sections = {
        "fleet": {"urls": [url], "site": "north", "gateway": "gate-1", "claim_ms": claim_ms},
        "areas": [{**AREA, **area}],
        "lane": {"inside": "garage"},
    }
    async with (
        a_barrier() as (barrier, _, port),
        alive(folder, barrier=barrier, port=port, cards=CARDS, **sections) as lane,
    ):
        part = SharedAreasLine(fleet_name=FleetName("north", "gate-1"), shared=lane.lanes.areas.shared)
        async with running(connection(url, part).run()):
            await lane.sees(lambda one: one.position == "closed")
            yield lane


async def trace_of(lane, kind: EventKind) -> str:
    await lane.told(kind)
    event = next(event for event in await lane.store.events.latest(limit=100) if event.type == kind)
    return json.loads(event.data)["trace"]


async def opened(lane) -> bool:
    return EventKind.GATE_OPENED in await lane.kinds()


async def passes(lane) -> None:
    """The vehicle drives through the gate."""
    await lane.sees(lambda one: one.position == "open")
    await lane.drives_through()
    await lane.passed(1)


async def test_a_lane_claims_before_it_opens_and_tells_the_passage(areas, tmp_path):
    other = Member("gate-2")
    async with a_lane(tmp_path, areas.url) as lane, sharing(other, url=areas.url):
        await until(lambda: not lane.lanes.areas.is_apart)
        await lane.arrives("1")
        assert "claim: passed (card:1 into garage, " in await trace_of(lane, EventKind.ACCESS_GRANTED)
        assert [(one.lane_id, one.holder) for one in other.shared.coming()] == [("gate-1", "card:1")]
        await passes(lane)
        await until(lambda: other.presence.count("garage") == 1 and not list(other.shared.coming()))
        assert lane.lanes.areas.counts() == {"garage": 1}


async def test_who_is_inside_through_another_gateway_is_refused(areas, tmp_path):
    other = Member("gate-2")
    async with a_lane(tmp_path, areas.url) as lane, sharing(other, url=areas.url):
        await until(lambda: not lane.lanes.areas.is_apart)
        other.passes("card:1")
        await until(lambda: lane.lanes.areas.counts() == {"garage": 1})
        await lane.arrives("1")
        assert "anti-passback: FAILED" in await trace_of(lane, EventKind.ACCESS_DENIED)
        assert not await opened(lane)


async def test_a_vehicle_that_backs_out_gives_its_claim_back(areas, tmp_path):
    other = Member("gate-2")
    async with a_lane(tmp_path, areas.url) as lane, sharing(other, url=areas.url):
        await until(lambda: not lane.lanes.areas.is_apart)
        await lane.arrives("1")
        await lane.sees(lambda one: one.position == "open")
        assert list(other.shared.coming())
        lane.arming(occupied=False)
        await until(lambda: not list(other.shared.coming()))
        assert other.presence.count("garage") == 0


async def test_no_gate_opens_for_a_vehicle_that_left_while_it_was_claimed(areas, tmp_path):
    """The claim's answer comes when the vehicle has gone: it is given back, and nothing opens."""
    other = Member("gate-2")
    async with a_lane(tmp_path, areas.url, apart="allow") as lane, sharing(other, url=areas.url):
        await until(lambda: not lane.lanes.areas.is_apart)
        lane.lanes.areas.shared.claim_seconds = 20.0
        areas.hang()
        try:
            await lane.arrives("1")
            await lane.sees(lambda one: one.phase == "deciding")
            lane.arming(occupied=False)
            await lane.sees(lambda one: one.phase == "idle")
        finally:
            areas.wake()
        await until(lambda: not lane.lanes.areas.shared.waits and not lane.lanes.areas.is_apart)
        await until(lambda: not list(other.shared.coming()))
        assert not await opened(lane)


@pytest.mark.parametrize("apart", ["allow", "deny", "local"])
async def test_with_a_server_that_hangs_the_rule_of_the_area_holds(areas, tmp_path, apart):
    async with a_lane(tmp_path, areas.url, claim_ms=150, apart=apart) as lane:
        await until(lambda: not lane.lanes.areas.is_apart)
        areas.hang()
        try:
            await lane.arrives("1")
            kind = EventKind.ACCESS_DENIED if apart == "deny" else EventKind.ACCESS_GRANTED
            trace = await trace_of(lane, kind)
            assert "the other gateways cannot be asked" in trace
            assert ("no answer within 150 ms" in trace) is (apart != "deny")
        finally:
            areas.wake()
        if apart == "deny":
            await until(lambda: not lane.lanes.areas.shared.waits)
        else:
            await passes(lane)
            await until(lambda: not lane.lanes.areas.shared.waits)


async def test_without_a_server_the_gate_opens_at_once_by_local_knowledge(tmp_path):
    async with a_lane(tmp_path, "nats://127.0.0.1:9") as lane:
        await lane.arrives("1")
        assert "local knowledge alone" in await trace_of(lane, EventKind.ACCESS_GRANTED)
        await passes(lane)
        await lane.arrives("1")
        assert "anti-passback: FAILED" in await trace_of(lane, EventKind.ACCESS_DENIED)
