"""Promise: whatever pages go wrong and whatever central changes while it is read, no card goes that central still has,
and none stays that it has not for more than two clean sweeps."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from wired import down_sync

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.clock import SystemClock
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount, Faults, seed_site

pytestmark = pytest.mark.long("random lists by the thousand")

PICK = st.integers(0, 1000)
CARDS = 60
PAGE = 25
DURING = st.tuples(st.integers(1, 6), st.sampled_from(["add", "remove", "replace"]), PICK)
FAULTS = (
    {"count_off_by": 1},
    {"truncate_to": 7},
    {"paths": "/v1/access/list", "error": "text", "error_times": 1},
    {"paths": "/v1/access", "error": "json", "error_times": 3},
    {"lost_answers": 2},
)
BENDS = st.sampled_from(["skip", "twice", "reversed", "empty"])


class Swept(RuleBasedStateMachine):
    """A card list at central, read by a site through pages of 25."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = SystemClock()
        self.central = Central(clock=self.clock, accounts=(CentralAccount("gateway", "right horse"),), page_cap=PAGE)
        seed_site(self.central.tables, now=self.clock.wall(), devices={}, cameras={}, cards=CARDS)
        self.table = self.central.tables.cards
        self.real_page = self.table.page
        self.table.page = self.page
        self.asked = 0
        self.during = []  # (how many pages were given by then, what changes, which card)
        self.bends = {}  # how the page with this number comes
        self.ever_without = set()  # cards that central lacked at any moment of the pull under way
        self.missed = {}  # clean sweeps since central lost the card
        self.new = 0
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
        self.down = down_sync(client=self.client, store=self.store, clock=self.clock)

    def page(self, matches, *, page, limit, **more):
        batch = self.real_page(matches, page=page, limit=limit, **more)
        records = batch.records
        match self.bends.get(page):
            case "skip":
                batch = replace(batch, records=records[1:])
            case "twice":
                batch = replace(batch, records=records[:1] + records[:-1])
            case "reversed":
                batch = replace(batch, records=records[::-1])
            case "empty":
                batch = replace(batch, records=[])
            case "hidden":  # as one voice: its list lacks it, and says nothing of it
                batch = replace(batch, records=records[1:], count=batch.count - 1)
        if "hidden" in self.bends.values() and self.bends.get(page) != "hidden":
            batch = replace(batch, count=batch.count - 1)
        self.asked += 1
        for due in [item for item in self.during if item[0] <= self.asked]:
            self.during.remove(due)
            self.change(*due[1:])
        return batch

    def change(self, what, pick):
        if what == "add" or not self.table:
            self.new += 1
            self.table.add({"number": f"88{self.new:04d}", "status": "active"})
            return
        number = sorted(self.table)[pick % len(self.table)]
        if what == "remove":
            self.table.remove(number)
            self.ever_without.add(number)
            self.missed[number] = 0
        elif what == "replace":  # what was read goes, something comes: the count stays, and the pages shift
            self.change("add", pick)
            self.change("remove", pick)
        elif what == "halve":
            for number in sorted(self.table)[::2]:
                self.table.remove(number)
                self.ever_without.add(number)
                self.missed[number] = 0

    @initialize()
    def first_pull(self):
        self.pull()

    @rule(what=st.sampled_from(["add", "remove", "replace", "halve"]), pick=PICK)
    def change_between_pulls(self, what, pick):
        self.change(what, pick)

    @rule()
    def restart(self):
        self.do(self.client.close())
        self.do(self.store.close())
        self.start()

    @rule(
        bends=st.dictionaries(st.integers(1, 3), BENDS, max_size=2),
        during=st.lists(DURING, max_size=3),
        faults=st.sampled_from([{}, {}, {}, *FAULTS]),
    )
    def pull_through(self, bends, during, faults):
        self.bends, self.during, self.central.faults = dict(bends), list(during), Faults(**faults)
        self.pull(clean=not (bends or during or faults))
        self.bends, self.during, self.central.faults = {}, [], Faults()

    @rule(page=st.integers(1, 3), during=st.lists(DURING, max_size=1))
    def pull_a_list_that_lacks_one(self, page, during):
        """With one voice: nothing in the list says so."""
        self.bends, self.during = {page: "hidden"}, list(during)
        self.pull(clean=False)
        self.bends, self.during = {}, []

    @rule()
    def pull_in_peace(self):
        self.pull()

    def pull(self, *, clean=True):
        before, had = self.site(), set(self.table)
        self.asked = 0
        self.ever_without = set()
        try:
            report = self.do(self.down.pull())
        except CentralUnavailable:
            report = None
        after = self.site()
        assert not (before & had & set(self.table)) - self.ever_without - after, "a card went that central still has"
        if not clean:
            return
        assert report is not None
        assert after >= set(self.table)
        for number in after - set(self.table):
            self.missed[number] = self.missed.get(number, 0) + 1
            assert self.missed[number] < 2, "a card is there after two clean sweeps without it"

    def site(self):
        return set(self.do(self.store.cards.records()))

    def teardown(self):
        try:
            self.pull()
            self.pull()
            assert self.site() == set(self.table)
        finally:
            self.do(self.client.close())
            self.do(self.store.close())
            self.do(self.central.stop())
            self.loop.close()
            shutil.rmtree(self.folder)


Swept.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=12,
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.shrink],  # each step is a pull over sockets
    suppress_health_check=list(HealthCheck),
)
TestSwept = Swept.TestCase
