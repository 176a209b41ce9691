"""A command that the network held back moves no gate."""

from __future__ import annotations

import pytest

from gateway.runtime.clock import iso_utc

SECOND = 1_000_000
OPEN = ("/v1/device/open", {"id": 101})
HOLD = ("/status/lane/order", {"lane_id": "entry", "order": "hold_open"})
LATE = "The command came too late, so it was not carried out. Look at the gate, and try again."


def ago_of(gateway, seconds):
    return iso_utc(gateway.clock.wall().micros - seconds * SECOND)


@pytest.mark.parametrize(("path", "body"), [OPEN, ("/v1/device/close", {"id": 101}), HOLD])
@pytest.mark.parametrize("ago", [7, 3600, -3600])
async def test_a_late_command_is_refused_and_moves_nothing(gateway, path, body, ago):
    status, answer = await gateway.call(path, body, Sent_At=ago_of(gateway, ago))
    assert (status, answer["error"]) == (409, LATE)
    assert gateway.board.commands == []
    assert gateway.board.lanes()[0].order == ""


async def test_a_command_in_time_is_carried_out(gateway):
    status, _ = await gateway.call(*OPEN, Sent_At=ago_of(gateway, 1))
    assert (status, len(gateway.board.commands)) == (200, 1)
    status, _ = await gateway.call(*OPEN)
    assert (status, len(gateway.board.commands)) == (200, 2), "programs need not say when"


async def test_a_stop_is_never_too_late(gateway):
    status, _ = await gateway.call("/status/lane/stop", {"lane_id": "entry"}, Sent_At=ago_of(gateway, 60))
    assert (status, len(gateway.board.commands)) == (200, 1)


async def test_what_is_no_moment_is_named(gateway):
    status, answer = await gateway.call(*OPEN, Sent_At="soon")
    assert status == 400
    assert answer["error"].startswith("Sent-At: ")
    assert gateway.board.commands == []
