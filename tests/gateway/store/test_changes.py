from __future__ import annotations

import asyncio

from gateway.store import Changes


async def test_waiting_ends_at_the_next_change():
    changes = Changes()
    waiting = [asyncio.get_running_loop().create_task(changes.beyond(0, within=20)) for _ in range(3)]
    await asyncio.sleep(0)
    changes.bump()
    assert await asyncio.gather(*waiting) == [1, 1, 1]


async def test_a_slow_waiter_hears_of_the_last_change():
    changes = Changes()
    for _ in range(5):
        changes.bump()
    assert await changes.beyond(1, within=20) == 5


async def test_without_change_the_wait_has_an_end():
    changes = Changes()
    changes.bump()
    assert await changes.beyond(1, within=0.01) == 1
