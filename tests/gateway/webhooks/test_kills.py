"""Promise: an event that is on disk reaches the receiver, through kill -9 at any moment, under one id."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long("kills two programs; test_delivery stops one and begins it anew")

PROGRAM = Path(__file__).with_name("posting_gateway.py")


def recorded_in(output: bytes) -> set[int]:
    """The ids that whole lines name."""
    return {int(line.split()[1]) for line in output.split(b"\n")[:-1] if line.startswith(b"recorded ")}


async def test_what_was_recorded_is_delivered_through_kills(opened, receiving, tmp_path):
    receiver, dice = await receiving(), random.Random()
    receiver.answer = lambda _got, _count: dice.choice((200, 200, 200, 500))
    async with opened(tmp_path) as site:
        webhook = await site.hook(receiver.url, "access.granted")
    said: set[int] = set()
    for _ in range(2):
        program = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert program.stdout is not None
        until = len(said) + dice.randint(5, 120)
        while len(said) < until and (line := await program.stdout.readline()).endswith(b"\n"):
            said |= recorded_in(line)
        program.kill()
        rest = await program.stdout.read()
        said |= recorded_in(rest)
        await program.wait()
    receiver.answer = lambda _got, _count: 200
    async with opened(tmp_path) as site:
        known = await site.settled(webhook)
        assert known.books.failed == 0 or await site.registry.replay(webhook.id, since=None, until=None)
        await site.settled(webhook)
    taken = {got.event_id for got in receiver.got if got.id in receiver.answered}
    assert len(said) > 15
    assert said <= taken
    assert len({(got.event_id, got.id) for got in receiver.got}) == len({got.event_id for got in receiver.got})
    assert all(got.is_signed() for got in receiver.got)
