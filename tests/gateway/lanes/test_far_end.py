"""A lane at a barrier over TCP, by its real driver: what the far end does, the lane knows and tells."""

from __future__ import annotations

import time

import pytest
from far_end_site import GATE, a_barrier, alive

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P


@pytest.fixture
async def far_end():
    async with a_barrier() as far_end:
        yield far_end


async def test_boom_half_way_at_the_start_is_told_with_the_way_out_and_whoever_passes_is_unauthorised(
    far_end, tmp_path
):
    barrier, _, port = far_end
    barrier.force(opening=0.5, now=time.monotonic())
    async with alive(tmp_path, barrier=barrier, port=port) as lane:
        text = await lane.told(E.POSITION_UNKNOWN)
        assert "open it, then close it" in text
        assert text in lane.shown().troubles
        lane.arming(occupied=True)
        await lane.sees(lambda shown: shown.vehicle is PointState.ON)
        lane.under(occupied=True)
        await lane.sees(lambda shown: shown.under is PointState.ON)
        lane.arming(occupied=False)
        await lane.sees(lambda shown: shown.vehicle is PointState.OFF)
        lane.under(occupied=False)
        assert "position was not known" in await lane.told(E.UNAUTHORISED_PASSAGE)
        assert [one.passage.outcome for one in await lane.passages()] == [P.UNAUTHORISED]
        with pytest.raises(CommandRefused, match="open it first, then close it"):
            await lane.lanes.command(device_id=GATE, action=GateAction.CLOSE, source="user:tech")
        await lane.lanes.command(device_id=GATE, action=GateAction.OPEN, source="user:tech")
        await lane.sees(lambda shown: shown.position is GatePosition.OPEN)
        assert "position has not been known" in await lane.told(E.TROUBLE_ENDED)
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        assert lane.shown().troubles == ()
