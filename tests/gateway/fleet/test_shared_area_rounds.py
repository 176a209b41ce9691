"""Four gateways and three servers under faults, checked; and faults of the product that the checker must find."""

from __future__ import annotations

import pytest
from shared_area_rounds import run

pytestmark = pytest.mark.timeout(180)


async def test_gateways_that_share_areas_keep_their_promises_through_faults(tmp_path):
    outcome = await run(tmp_path, seconds=5, seed=11, pause=0.5)
    assert outcome.faults == ()
    assert outcome.counts["passages"] > 50
