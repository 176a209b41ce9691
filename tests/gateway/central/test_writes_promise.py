"""Promise: in the end the site has what central has, nothing was made twice, and the books balance, whatever order
local changes, changes at central, pulls, outages, lost answers and crashes come in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from wired import central_writes, down_sync, outbox_sender

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import (
    CARD_CREATE,
    CARD_DELETE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    FIRST_PROVISIONAL_ID,
)
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount, Faults, seed_site

AT_ONCE = Backoff(first=0.0001, longest=0.0002)
PICK = st.integers(0, 1000)


class InStep(RuleBasedStateMachine):
    """The site, its central, and whatever comes between them."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.made = {"access_card": [], "device": []}
        self.number = 0
        self.clock = SystemClock()
        self.central = Central(clock=self.clock, accounts=(CentralAccount("gateway", "right horse"),))
        seed_site(self.central.tables, now=self.clock.wall(), devices={101: "Gate"}, cameras={}, cards=4)
        self.up = True
        self.do(self.central.start())
        self.start()

    def do(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def start(self):
        self.store = Store(folder=self.folder, site_name="North", sends=True)
        self.do(self.store.open())
        self.client = CentralClient(
            url=self.central.url, account=GatewayAccount("gateway", "right horse"), clock=self.clock, timeout_seconds=5
        )
        parts = {"client": self.client, "store": self.store, "clock": self.clock}
        self.writes = central_writes(**parts)
        self.down = down_sync(**parts)
        self.sender = outbox_sender(**parts, row_backoff=AT_ONCE, away_backoff=AT_ONCE, may_take=0)
        self.do(self.writes.recall())

    def write(self, operation, body):
        try:
            return self.do(self.writes.write(operation, body))
        except CentralRefused as error:
            if error.status != 404:  # it was deleted at central
                raise
            return None

    def cards(self):
        """Ids by which somebody at the site may speak of cards: those listed, and those that were ever given."""
        return sorted(self.do(self.store.cards.records())) + self.made["access_card"]

    @initialize()
    def first_pull(self):
        self.do(self.down.pull())

    @rule()
    def make_a_card(self):
        self.number += 1
        made = self.write(CARD_CREATE, {"number": f"77{self.number:03d}", "holder_name": "Nora"})
        self.made["access_card"].append(made.record_id)

    @rule()
    def make_a_device(self):
        self.number += 1
        self.made["device"].append(self.write(DEVICE_CREATE, {"name": f"Kiosk {self.number}"}).record_id)

    @rule(pick=PICK, status=st.sampled_from(["active", "lost", "suspended"]))
    def change_a_cards_state(self, pick, status):
        if known := self.known_cards():
            self.write(CARD_LIFECYCLE, {"id": known[pick % len(known)], "status": status})

    @rule(pick=PICK, note=st.sampled_from(["a", "b"]))
    def change_a_card(self, pick, note):
        if known := self.known_cards():
            self.write(CARD_UPDATE, {"id": known[pick % len(known)], "note": note})

    @rule(pick=PICK)
    def delete_a_card(self, pick):
        if known := self.known_cards():
            self.write(CARD_DELETE, {"id": known[pick % len(known)]})

    @rule(pick=PICK, text=st.sampled_from(["a", "b"]))
    def configure_a_device(self, pick, text):
        known = [101, *self.made["device"]]
        self.write(DEVICE_CONFIG, {"id": known[pick % len(known)], "description": text})

    @rule(pick=PICK, status=st.sampled_from(["lost", "active", ""]), turns=st.integers(0, 60))
    def a_caller_leaves(self, pick, status, turns):
        """A caller goes away at any moment of a write: central may have it, will have it, or never gets it."""
        known = self.known_cards()
        if status and known:
            self.do(self.leave(CARD_LIFECYCLE, {"id": known[pick % len(known)], "status": status}, turns))
            return
        self.number += 1
        self.do(self.leave(CARD_CREATE, {"number": f"77{self.number:03d}", "holder_name": "Nora"}, turns))

    async def leave(self, operation, body, turns):
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self.left(operation, body))
            for _ in range(turns):
                await asyncio.sleep(0.0005)  # each is some turns of the loop, in which central works too
            writing.cancel()
        await asyncio.sleep(0.02)  # what is on the way to central arrives: nothing is taken for lost before it can

    async def left(self, operation, body):
        with contextlib.suppress(CentralRefused):
            await self.writes.write(operation, body)

    def known_cards(self):
        """Cards that are there now, also by ids that they had before."""
        return [number for number in self.cards() if self.do(self.there(number))]

    async def there(self, number):
        return await self.store.cards.get(await self.store.pending_writes.site_id("access_card", number)) is not None

    @rule(pick=PICK, change=st.sampled_from(["change", "remove", "add"]))
    def central_changes_its_cards(self, pick, change):
        table = self.central.tables.cards
        if change == "add" or not table:
            self.number += 1
            table.add({"number": f"99{self.number:03d}", "status": "active"})
            return
        number = sorted(table)[pick % len(table)]
        if change == "change":
            table.change(number, {"note": f"central {pick}"})
        else:
            table.remove(number)

    @rule()
    def pull(self):
        try:
            self.do(self.down.pull())
        except CentralUnavailable:
            assert not self.up or self.central.faults.lost_answers

    @rule()
    def send(self):
        self.do(self.sender.send_due())

    @rule()
    def central_goes_away(self):
        if self.up:
            self.up = False
            self.do(self.central.stop())

    @rule()
    def central_comes_back(self):
        if not self.up:
            self.up = True
            self.do(self.central.start())

    @rule(losses=st.integers(1, 3), paths=st.sampled_from(["/v1/access", "/v1/device", "/v1/"]))
    def answers_are_lost(self, losses, paths):
        self.central.faults = Faults(paths=paths, lost_answers=losses)

    @rule()
    def crash(self):
        """Crash: the next start has only what is on disk at this moment."""
        cut = Path(tempfile.mkdtemp())
        shutil.copytree(self.folder, cut, dirs_exist_ok=True)
        self.end()
        self.folder = cut
        self.start()

    @rule()
    def crash_with_the_card_file_behind(self):
        """The site's own file had taken the last writes, the cards' file had not."""
        self.number += 1
        cut = Path(tempfile.mkdtemp())
        before = {path.name: path.read_bytes() for path in self.folder.glob("cards.db*")}
        made = self.write(CARD_CREATE, {"number": f"77{self.number:03d}"})
        self.do(self.sender.send_due())
        shutil.copytree(self.folder, cut, dirs_exist_ok=True)
        for path in cut.glob("cards.db*"):
            path.unlink()
        for name, content in before.items():
            (cut / name).write_bytes(content)
        self.end()
        self.folder = cut
        self.start()
        self.made["access_card"].append(made.record_id)

    @invariant()
    def books_balance(self):
        books = self.do(self.store.outbox.books())
        assert books.balance(), books
        assert books.parked == 0, self.do(self.store.pending_writes.waiting("access_card"))

    @invariant()
    def no_card_is_there_twice(self):
        numbers = [json.loads(text)["number"] for text in self.do(self.store.cards.records()).values()]
        assert len(numbers) == len(set(numbers))

    def end(self):
        self.do(self.client.close())
        self.do(self.store.close())
        shutil.rmtree(self.folder)

    def teardown(self):
        try:
            self.in_the_end_both_are_alike()
        finally:
            self.end()
            if self.up:
                self.do(self.central.stop())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    def in_the_end_both_are_alike(self):
        self.central.faults = Faults()
        self.central_comes_back()
        for _ in range(200):
            if not self.do(self.store.outbox.books()).waiting:
                break
            self.do(self.store.outbox.retry_now())
            self.do(self.sender.send_due())
        assert self.do(self.store.outbox.books()).waiting == 0
        for _ in range(4):  # a large removal waits for a second pull
            self.do(self.down.pull())
        at_site = {number: json.loads(text) for number, text in self.do(self.store.cards.records()).items()}
        assert at_site == dict(self.central.cards)
        devices = self.do(self.store.devices.all())
        assert {item.id: json.loads(item.record) for item in devices} == dict(self.central.tables.devices)
        numbers = [card["number"] for card in self.central.cards.values()]
        assert len(numbers) == len(set(numbers))
        names = [device["name"] for device in self.central.tables.devices.values()]
        assert len(names) == len(set(names))
        for kind, given in self.made.items():
            for number in given:
                now = self.do(self.store.pending_writes.site_id(kind, number))
                gone = now >= FIRST_PROVISIONAL_ID  # taken back before it ever went up
                assert gone or kind == "access_card" or now in self.central.tables.devices


TestInStep = InStep.TestCase
TestInStep.settings = settings(
    max_examples=examples(4, of=8), stateful_step_count=16, deadline=None, suppress_health_check=list(HealthCheck)
)
