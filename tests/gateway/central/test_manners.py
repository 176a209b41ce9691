"""Manners of many sites at one central: unchanged lists, a pace, rests, and the wait after its return."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import pytest
from aiohttp import web
from wired import down_sync

from gateway.central.client.answers import judge
from gateway.central.client.client import CentralClient
from gateway.central.client.pace import Pace, Rests, ReturnHold, asked_rest
from gateway.central.client.session import GatewayAccount
from gateway.central.client.state import CentralState
from gateway.central.client.unchanged import MOST_BYTES, WHOLE_SECONDS, UnchangedLists
from gateway.central.runner import stretched
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from simulation.far_ends.central import Central, CentralAccount, seed_site
from simulation.far_ends.central.service import Dialect
from simulation.far_ends.http_device import on_loopback

ASKED = {"page": 1, "page_limit": 500}


@pytest.fixture(params=[304, 412])
async def tagging(request):
    """A central that marks its lists with ETags."""
    clock = SystemClock()
    central = Central(
        clock=clock,
        accounts=(CentralAccount("gateway", "right horse"),),
        dialect=Dialect(unchanged_status=request.param),
    )
    seed_site(central.tables, now=clock.wall(), devices={101: "Gate"}, cameras={201: "Entry"}, cards=40)
    await central.start()
    yield central
    await central.stop()


@pytest.fixture
async def asking(tagging):
    client = CentralClient(url=tagging.url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock())
    yield client
    await client.close()


def statuses(central):
    return [asked.status for asked in central.requests if asked.path == "/v1/access/list"]


async def test_a_list_that_has_not_changed_is_not_sent_again(tagging, asking, store):
    down = down_sync(client=asking, store=store, clock=SystemClock())
    await down.pull()
    first = asking.received
    report = await down.pull()
    assert (report.cards.cards, report.devices, report.cameras, report.problems) == (40, 1, 1, ())
    assert asking.received - first < first / 10


async def test_a_card_suspended_at_a_central_with_etags_is_suspended_here(tagging, asking, store):
    down = down_sync(client=asking, store=store, clock=SystemClock())
    await down.pull()
    card_id, record = next(iter(tagging.tables.cards.items()))
    tagging.tables.cards.put({**record, "id": card_id, "status": "suspended"})
    assert (await down.pull()).cards.changed == 1
    assert statuses(tagging)[-2:] == [200, tagging.unchanged_status]


async def answers(lists, *, body=ASKED):
    return await lists.fetch("POST", "/v1/access/list", dict(body), {})


class FalseTags:
    """A far end whose ETag stays the same whatever it answers."""

    def __init__(self):
        self.whole = 0
        self.now = 0.0
        self.lists = UnchangedLists(fetch=self.fetch, monotonic=lambda: self.now)

    async def fetch(self, method, path, body, headers, *, on_headers=None):
        on_headers({"ETag": '"always"'})
        if headers.get("If-None-Match"):
            return 304, b""
        self.whole += 1
        return 200, b"%d" % self.whole


async def test_wrong_etags_hide_a_change_for_an_hour_at_most():
    end = FalseTags()
    assert await answers(end.lists) == (200, b"1")
    end.now = WHOLE_SECONDS
    assert await answers(end.lists) == (200, b"1")
    end.now = WHOLE_SECONDS + 1
    assert await answers(end.lists) == (200, b"2")


async def test_pages_are_told_apart_by_what_was_asked():
    end = FalseTags()
    assert await answers(end.lists) == (200, b"1")
    assert await answers(end.lists, body={"page": 2, "page_limit": 500}) == (200, b"2")
    assert await answers(end.lists) == (200, b"1")


async def test_the_memory_of_lists_is_bounded():
    sent = []

    async def fetch(method, path, body, headers, *, on_headers=None):
        sent.append("If-None-Match" in headers)
        on_headers({"ETag": '"1"'})
        return (304, b"") if sent[-1] else (200, (b"%d" % body["page"]) + noise)

    noise = b"".join(i.to_bytes(8) for i in _dice(MOST_BYTES // 8 // 3))
    lists = UnchangedLists(fetch=fetch, monotonic=lambda: 0.0)
    for page in (1, 2, 3, 3, 1):
        await answers(lists, body={"page": page})
    assert sent == [False, False, False, True, False], "the page used longest ago made room"


def _dice(count):
    value = 1
    for _ in range(count):
        value = value * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        yield value


async def test_requests_name_the_program_and_its_version():
    named = []

    async def alive(request):
        named.append(request.headers["User-Agent"])
        return web.json_response({"success": True})

    app = web.Application()
    app.router.add_get("/", alive)
    async with on_loopback(app) as port:
        client = CentralClient(url=f"http://127.0.0.1:{port}", account=GatewayAccount("a", "b"), clock=SystemClock())
        await client.look()
        await client.close()
    assert named == [f"edge-gateway/{version('edge-gateway')}"]


class Hands:
    """A monotonic clock that sleeping moves on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        self.now += seconds

    def monotonic(self):
        return self.now


async def test_requests_keep_the_pace_and_urgent_ones_go_first(monkeypatch):
    hands = Hands(monkeypatch)
    pace = Pace(20, monotonic=hands.monotonic)
    for _ in range(120):
        await pace.turn()
    assert hands.now == pytest.approx(5.0, abs=0.1), "a burst of 20, then 20 a second"
    before = hands.now
    for _ in range(20):
        await pace.turn(urgent=True)
    assert hands.now == before
    await pace.turn()
    assert hands.now - before == pytest.approx(1.0, abs=0.1), "what went first counts"


async def test_without_a_pace_nothing_waits(monkeypatch):
    hands = Hands(monkeypatch)
    pace = Pace(None, monotonic=hands.monotonic)
    for _ in range(1000):
        await pace.turn()
    assert hands.now == 0.0


async def answered(rests, operation, status, body=b"<html>Bad Gateway</html>", seconds=None):
    return rests.noted(operation, judge(operation, status, body), status=status, seconds=seconds)


def is_resting(rests):
    try:
        rests.check("PUT /v1/entry")
    except CentralUnavailable as error:
        return not error.sent
    return False


async def test_a_front_that_answers_for_central_is_asked_less_and_less():
    now = 0.0
    rests = Rests(monotonic=lambda: now, between=Backoff(first=1.0, longest=60.0))
    waits = []
    for _ in range(9):
        await answered(rests, "POST /v1/access/list", 502)
        began = now
        while is_resting(rests):
            now += 0.5
        waits.append(now - began)
    assert waits[0] <= 1
    assert max(waits) <= 60
    assert waits[-1] >= 30
    await answered(rests, "POST /v1/access/list", 200, b'{"success": true}')
    await answered(rests, "POST /v1/access/list", 502)
    now += 1.0
    rests.check("PUT /v1/entry")


async def test_a_front_says_how_long_to_wait():
    now = 0.0
    rests = Rests(monotonic=lambda: now)
    await answered(rests, "POST /v1/access/list", 503, seconds=asked_rest({"Retry-After": "40"}))
    now = 39.9
    with pytest.raises(CentralUnavailable):
        rests.check("GET /")
    now = 40.1
    rests.check("GET /")


async def test_a_refusal_of_one_record_is_no_reason_to_rest():
    rests = Rests(monotonic=lambda: 0.0)
    assert isinstance(await answered(rests, "PUT /v1/entry", 400, b'{"success": false, "error": "no"}'), CentralRefused)
    await answered(rests, "PUT /v1/entry", 500, b'{"success": false, "error": "database"}')
    rests.check("PUT /v1/entry")


def returned(*, away, at, longest=60.0):
    """A hold, and what it is asked after central came back `away` seconds after it was lost."""
    state = CentralState(reachable=False, since=1.0)
    current = [state]
    hold = ReturnHold(state=lambda: current[0], monotonic=lambda: at, longest=longest)
    assert hold.left() == 0
    current[0] = CentralState(reachable=True, since=2.0, away_seconds=away)
    return hold.left()


def test_sites_spread_what_waited_over_a_minute_after_a_long_loss():
    holds = [returned(away=3600.0, at=7.0) for _ in range(300)]
    assert max(holds) <= 60
    assert max(holds) > 50
    assert min(holds) < 10


def test_after_a_short_loss_what_waited_goes_soon():
    assert max(returned(away=20.0, at=7.0) for _ in range(100)) <= 2
    assert returned(away=3600.0, at=7.0, longest=0.0) == 0


def test_pulls_become_rare_while_nothing_changes():
    apart = [stretched(pull_seconds=10, longest=60, quiet=quiet) for quiet in range(8)]
    assert apart[0] == 10
    assert apart == sorted(apart)
    assert apart[-1] == 60
    assert stretched(pull_seconds=10, longest=60, quiet=10_000) == 60
    assert stretched(pull_seconds=90, longest=60, quiet=5) == 90
