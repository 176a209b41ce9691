"""`edge-gateway outbox` against the running interface."""

from __future__ import annotations

import asyncio
import json

import pytest
from running_gateway import typed
from typer.testing import CliRunner

from gateway.cli.outbox import app
from gateway.domain.writes import CARD_CREATE, CARD_UPDATE


@pytest.fixture
def outbox(gateway, tmp_path):
    """Exit status and output of the command, signed in as an account that may; and that no PIN is in any of it."""
    url = gateway.url.replace("://", "://chief@")

    async def call(*arguments):
        words = ("outbox", *arguments, "--url", url)
        ended = await asyncio.to_thread(typed, *words, cwd=tmp_path, EDGE_GATEWAY_PASSWORD="chief")
        assert "9753" not in ended.stdout + ended.stderr
        return ended.returncode, ended.stdout, ended.stderr

    return call


@pytest.fixture
async def refused(gateway):
    """The number of a change that central refused."""
    body = {"id": 4001, "note": "n", "pin": "9753"}
    await gateway.store.pending_writes.hold(CARD_UPDATE, 4001, body, now=1_767_225_600_000_000, sends=True)
    row = await waiting(gateway)
    await gateway.store.outbox.park(row, error="note: too short")
    return row.id


async def waiting(gateway):
    (row,) = [row for row in await gateway.store.outbox.due(now=0) if row.kind == "access_card"]
    return row


async def test_what_central_refused_is_shown_sent_again_edited_and_let_go(gateway, outbox, refused):
    listed, shown, unknown, none = await asyncio.gather(
        outbox("list"),
        outbox("show", str(refused), "--json"),
        outbox("retry", "999"),
        outbox("edit", str(refused), "note"),
    )
    assert listed[::2] == (0, "")
    assert listed[1].splitlines()[:3] == [
        f"{refused}  access_card 4001: update  (refused, since 2025-12-31 19:00:00 EST, 1 try)",
        "    central: note: too short",
        '    {"note": "n", "pin": "****"}',
    ]
    assert json.loads(shown[1])["fields"]["note"] == "n"
    assert "\nsince: 2025-12-31 19:00:00 EST\n" in (await outbox("show", str(refused)))[1]
    assert unknown == (1, "", "edge-gateway: the gateway refused: nothing waits under the number 999\n")
    assert none == (1, "", "edge-gateway: 'note' is not FIELD=VALUE\n")

    for wrong, said in (
        ("bogus=1", "bogus: is no field of this"),
        ("zones=text", "zones: must be"),
        ("valid_until=31/12/2026", "valid_until: "),
        ('number={"a": [1]}', "number: must be"),
    ):
        status, _, err = await outbox("edit", str(refused), wrong)
        assert (status, said in err) == (2, True), (wrong, err)
    assert (await outbox("edit", str(refused), "note=007", "number=99990003"))[
        1
    ] == f"{refused} is changed and sent again\n"
    row = await waiting(gateway)
    assert json.loads(row.body) == {"id": 4001, "note": "007", "number": "99990003", "pin": "9753"}
    assert "goes up by itself" in (await outbox("drop", str(refused), "--yes"))[2]
    await gateway.store.outbox.park(row, error="note: too short")
    assert (await outbox("retry", str(refused)))[1] == f"{refused} is sent again\n"
    none, count, *why = (await outbox("list"))[1].splitlines()
    assert (none, count) == (
        "central refused nothing",
        "2 records wait, and are sent once nothing below stands in their way:",
    )
    assert "    1 x access_card update, since 2025-12-31 19:00:00 EST: not tried yet" in why
    assert f"{refused}  access_card" in (await outbox("list", "--all"))[1]
    await gateway.store.outbox.park(row, error="note: too short")
    assert (await outbox("drop", str(refused), "--yes"))[:2] == (
        0,
        f"{refused} is dropped; central will never get it\n",
    )
    books = await gateway.store.outbox.books()
    assert books.balance()
    assert (books.parked, books.dropped) == (0, 1)


async def test_of_what_nobody_knows_a_person_says_that_central_lacks_it(gateway, tmp_path):
    await gateway.store.pending_writes.hold(CARD_CREATE, None, {"number": "77"}, now=1_767_225_600_000_000, sends=True)
    row = await waiting(gateway)

    async def settle(*options: str) -> tuple[str, str]:
        asked = ["settle", str(row.id), *options, "--data", str(tmp_path)]
        done = await asyncio.to_thread(CliRunner().invoke, app, asked)
        return (done.output.splitlines() or [""])[-1], str(done.exception or "")  # the gateway logs to the same output

    assert "goes up by itself" in (await settle("--not-there"))[1]
    await gateway.store.outbox.begin(row)
    await gateway.store.unknown_outcomes.leave_to_a_person(row, reason="it may be at central")
    assert await settle("--not-there") == (f"{row.id} is sent again", "")
    told = await gateway.store.refused.get(row.id)
    assert (told.parked, told.begun, told.stated_id) == (False, False, None)
    for slip in ({}, {"central_id": 4001, "not_there": True}):
        status, answer = await gateway.call("/status/outbox/settle", {"id": row.id, **slip})
        assert (status, "'central_id' or 'not_there'" in answer["error"]) == (400, True)
