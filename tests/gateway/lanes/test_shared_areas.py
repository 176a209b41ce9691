"""A gateway's part in shared areas without a server: what it makes of records that come, and what it wants written."""

from __future__ import annotations

import asyncio

import pytest
from shared_area_scene import Member

from gateway.domain.shared_areas import AreaStep, AreaWrite, GatewayCounts, HolderEntry
from gateway.lanes.claims import ClaimOutcome
from gateway.lanes.shared_areas import SharedAreas

ELSEWHERE = AreaStep(5, "gate-2", enters="garage")


@pytest.fixture
async def member() -> Member:
    made = Member("gate-1", limit=1)
    made.shared.begin()
    await made.shared.synchronised()
    write_all(made.shared, first=1)
    return made


def write_all(shared: SharedAreas, *, first: int) -> list[AreaWrite]:
    """Let a server take everything that is to be written, and show it."""
    written = []
    while writes := shared.writes(10):
        for revision, write in enumerate(writes, start=first + len(written)):
            shared.written(write, revision)
            if isinstance(write.value, HolderEntry):
                shared.entry_changed(write.holder, write.value, revision)
            else:
                shared.counts_changed("gate-1", write.value, revision)
        written += writes
    return written


async def asked(member: Member, holder: str = "card:1") -> tuple[asyncio.Task, AreaWrite]:
    """Ask for a claim; the task that waits for it, and what is to be written for it."""
    task = asyncio.get_running_loop().create_task(member.claim(holder))
    await asyncio.sleep(0)
    (write,) = member.shared.writes(10)
    return task, write


async def test_a_claim_counts_once_it_is_seen(member):
    task, write = await asked(member)
    member.shared.written(write, 7)
    await asyncio.sleep(0)
    assert not task.done(), "an acknowledgement does not say who came before"
    member.shared.entry_changed("card:1", write.value, 7)
    assert (await task)[1] is ClaimOutcome.CLAIMED


async def test_a_claim_that_the_server_took_over_another_write_does_not_count(member):
    task, write = await asked(member)
    member.shared.entry_changed("card:2", HolderEntry(), 6)
    member.shared.written(write, 8)
    member.shared.entry_changed("card:1", HolderEntry((ELSEWHERE,)), 7)
    member.shared.entry_changed("card:1", write.value, 8)
    assert (await task)[1] is ClaimOutcome.OVERTAKEN


async def test_a_claim_over_the_limit_is_given_back(member):
    member.shared.counts_changed("gate-2", GatewayCounts({"garage": 1}), 6)
    task, write = await asked(member)
    member.shared.written(write, 7)
    member.shared.entry_changed("card:1", write.value, 7)
    assert (await task)[1] is ClaimOutcome.FULL
    (given_back,) = member.shared.writes(10)
    assert given_back.value.claims == ()


async def test_a_passage_is_told_after_its_count_and_again_if_it_is_lost(member):
    member.passes("card:1")
    (counts,) = member.shared.writes(10)
    assert (counts.value.inside, counts.value.opened) == ({"garage": 1}, {})
    told = write_all(member.shared, first=10)
    assert [len(write.value.steps) for write in told[1:]] == [1]
    member.shared.entry_changed("card:1", HolderEntry((ELSEWHERE,)), 20)
    (again,) = member.shared.writes(10)
    assert again.value.steps == (ELSEWHERE, *told[1].value.steps)


async def test_a_refused_change_waits_for_what_the_server_shows(member):
    task, write = await asked(member)
    member.shared.written(write, None)
    assert member.shared.writes(10) == []
    member.shared.entry_changed("card:1", HolderEntry((ELSEWHERE,)), 9)
    assert (await task)[1] is ClaimOutcome.OVERTAKEN


async def test_without_a_server_nothing_is_claimed_and_passages_wait(member):
    member.shared.lost()
    assert await member.claim("card:1") == (None, ClaimOutcome.AWAY)
    member.passes("card:1")
    assert member.shared.waits == 1
