"""The story of a visit: whichever of its events is asked for, and nothing of the vehicle behind."""

import pytest

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.store import Entry

NOON = 1_767_268_800_000_000
SECOND = 1_000_000


@pytest.fixture
def happen(store):
    """`await happen(second, kind, credential, began=second of arrival)`: the id; with `began` it ends a passage."""

    async def record(second, kind, credential="", *, began=None, lane="entry"):
        at = NOON + second * SECOND
        data = {"credential": credential} if credential else {}
        event = Event(kind, at, clock_trusted=True, text="…", lane_id=lane, data=data)
        passage = None
        if began is not None:
            passage = Passage(
                lane, "entry", PassageOutcome.PASSED, NOON + began * SECOND, at, clock_trusted=True,
                credential=credential,
            )  # fmt: skip
        return (await store.journal.record(Entry(events=(event,), passage=passage))).event_ids[0]

    return record


async def story(store, event_id):
    return [item.id for item in await store.passages.story(await store.events.get(event_id))]


async def test_every_event_of_a_visit_tells_all_of_it(store, happen):
    before = await happen(-5, EventKind.ACCESS_DENIED, "0001")
    await happen(-4, EventKind.VEHICLE_BACKED_OUT, "0001", began=-9)
    visit = [await happen(0, EventKind.VEHICLE_ARRIVED), await happen(1, EventKind.ACCESS_DENIED, "0002")]
    await happen(1, EventKind.ACCESS_DENIED, "0003", lane="exit")
    visit += [await happen(2, EventKind.ACCESS_GRANTED, "0007"), await happen(4, EventKind.GATE_OPENED)]
    visit.append(await happen(9, EventKind.VEHICLE_PASSED, "0007", began=0))
    after = await happen(12, EventKind.ACCESS_DENIED, "0007")
    for event_id in visit:
        assert await story(store, event_id) == visit
    assert await story(store, before) == [before, before + 1]
    assert await story(store, after) == [after], "that visit has not ended yet"


async def test_the_vehicle_behind_is_in_its_own_story(store, happen):
    first = [await happen(0, EventKind.ACCESS_GRANTED, "0007")]
    second = [await happen(3, EventKind.ACCESS_GRANTED, "0008")]
    first.append(await happen(5, EventKind.VEHICLE_PASSED, "0007", began=0))
    second.append(await happen(9, EventKind.VEHICLE_PASSED, "0008", began=2))
    assert await story(store, first[0]) == await story(store, first[1]) == first
    assert await story(store, second[0]) == await story(store, second[1]) == second


async def test_an_event_of_no_lane_is_alone(store, happen):
    alone = await happen(1, EventKind.MOMENT_MARKED, lane="")
    await happen(2, EventKind.VEHICLE_PASSED, "0007", began=0)
    assert await story(store, alone) == [alone]
