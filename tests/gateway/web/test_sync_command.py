"""`edge-gateway sync`, and what it asks the interface for."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import tempfile

import pytest
from forked import Forked
from running_gateway import typed

from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import CentralNotice
from gateway.domain.writes import CARD_UPDATE


async def told(folder, *words):
    """Exit status and output of a command that is not followed."""
    ended = await asyncio.to_thread(typed, "sync", *words, "--data", folder, cwd=folder)
    return ended.returncode, ended.stdout, ended.stderr


class Followed:
    """A command that follows what it asked for, and what it says meanwhile."""

    def __init__(self, folder, command, *options):
        told, output = os.pipe()
        self._told, self._errors = os.fdopen(told), tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed at its end)
        words = ("sync", command, *options, "--data", folder)
        self._process = Forked("gateway", *words, output=output, errors=self._errors.fileno(), cwd=folder)
        os.close(output)

    async def line(self):
        return await asyncio.to_thread(self._told.readline)

    async def ended(self):
        with self._told, self._errors:
            output = await asyncio.to_thread(self._told.read)
            status = await asyncio.to_thread(self._process.wait, 30)
            self._errors.seek(0)
            return status, output, self._errors.read()


@pytest.fixture
def folder(gateway, tmp_path):
    """The data folder of a gateway that runs."""
    return tmp_path


async def test_the_state_is_told(gateway, folder):
    gateway.central.show(
        notices=(
            CentralNotice(
                ProblemKind.CENTRAL_NOT_PERMITTED,
                "central does not permit POST /v1/camera/list to the gateway's account",
            ),
        )
    )
    status, out, err = await told(folder, "status")
    assert (status, err) == (0, "")
    assert re.fullmatch(r"central answers, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d E[SD]T", out.splitlines()[0])
    assert "40 access cards, 3 devices, 1 cameras" in out
    assert "! central does not permit POST /v1/camera/list" in out
    books = await gateway.store.outbox.books()
    parts = f"{books.delivered} delivered, {books.waiting} waiting, 0 refused, 0 replaced by newer, 0 dropped"
    assert out.splitlines()[-1] == f"{books.accepted} accepted for central: {parts}"


async def test_books_that_do_not_balance_are_told_and_are_the_exit_status(gateway, folder):
    await gateway.store.pending_writes.hold(CARD_UPDATE, 4001, {"id": 4001, "note": "n"}, now=1, sends=True)
    books = await gateway.store.outbox.books()
    await gateway.store.database.write(
        lambda connection: connection.execute("DELETE FROM outbox WHERE record_id = 4001")
    )
    status, out, err = await told(folder, "status")
    assert (status, "central answers" in out) == (1, True)
    assert f"the books do not balance: {books.accepted} were accepted for central, {books.accepted - 1} are" in err


async def test_a_refresh_is_followed_to_its_end(gateway, folder):
    gateway.central.show(progress="access cards: 20 of 40")
    program = Followed(folder, "refresh")
    assert await program.line() == "access cards: 20 of 40\n"
    assert gateway.central.asked_by == [f"user:local:{getpass.getuser()}"]
    gateway.central.show(progress="", refreshing=False)
    status, out, err = await program.ended()
    assert (status, err) == (0, "")
    assert "40 access cards" in out


async def test_a_refresh_that_central_did_not_give_all_of_ends_with_1(gateway, folder):
    gateway.central.show(progress="access cards: 20 of 40")
    program = Followed(folder, "refresh")
    await program.line()
    notices = (CentralNotice(ProblemKind.CENTRAL_LIST_INCOMPLETE, "access_cards: the count says 2600, but 60 came"),)
    gateway.central.show(progress="", refreshing=False, incomplete=True, notices=notices)
    status, out, err = await program.ended()
    assert (status, "! access_cards: the count says 2600, but 60 came" in out) == (1, True)
    assert "central sent incomplete or contradictory lists" in err


async def test_a_refresh_without_central_says_so(gateway, folder):
    gateway.central.show(reachable=False, error="POST /v1/auth/login: no answer within 15 s")
    status, out, err = await told(folder, "refresh")
    assert (status, out) == (1, "")
    assert "no answer within 15 s; everything is fetched again as soon as it does" in err


async def test_comparing_with_central_is_followed_to_its_end(gateway, folder):
    gateway.central.show(progress="events: 500 looked at")
    program = Followed(folder, "reconcile", "--days", "14")
    assert await program.line() == "events: 500 looked at\n"
    assert gateway.central.asked_by == [f"user:local:{getpass.getuser()}: 14 days"]
    gateway.central.show(progress="", reconciling=False, reconciled="7 records compared; sent again: 2 entries")
    assert await program.ended() == (0, "7 records compared; sent again: 2 entries\n", "")


async def test_comparing_without_central_says_so(gateway, folder):
    gateway.central.show(reachable=False, error="no answer within 15 s")
    status, _, err = await told(folder, "reconcile")
    assert status == 1
    assert "the comparison continues as soon as it answers" in err


@pytest.mark.parametrize("days", ["0", "401"])
async def test_days_that_are_none_are_refused(gateway, folder, days):
    status, _, err = await told(folder, "reconcile", "--days", days)
    assert (status, gateway.central.asked_by) == (2, [])
    assert "days" in err
