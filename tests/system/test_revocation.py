"""A right that central takes away, from there to the refusal at the lane, with a central that answers after 150 ms."""

from __future__ import annotations

import json
import urllib.request

import pytest
from stopwatch import Stopwatch

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")

CARDS = 5_000
PULL_SECONDS = 5  # of the demo's site file
PULL_TAKES = 12 * 0.15 + 8 * 0.15 + 1  # cards, and devices and cameras, on a busy machine
REFUSAL_SECONDS = 3  # the vehicle drives up, the card is read


@pytest.fixture
def site(make_site, wait_until):
    site = make_site(cards=CARDS)
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=60, why="cards come from central")
    body = json.dumps({"latency_seconds": 0.15}).encode()
    urllib.request.urlopen(f"{site.ready.central_url}/demo/faults", data=body, timeout=30).close()
    return site


def test_a_card_is_refused_at_the_lane_soon_after_central_took_its_right_away(site, api_of, wait_until):
    central = api_of(0)
    central.base = site.ready.central_url
    central.session = central.call("/v1/auth/login", username="gateway", password="demo")["session"]
    ways = (("PATCH", {"status": "suspended"}, "suspended"), ("DELETE", {}, "no card has this number or plate"))
    for (method, change, reason), card, number in zip(ways, GOOD_CARDS, (4001, 4002), strict=False):
        before, watch = site.newest(), Stopwatch(children=True)
        assert central.raw(method, "/v1/access", {"id": number, **change})[0] == 200

        def at_site(before=before):
            return [one for one in site.api.events(types=[EventKind.CARDS_CHANGED]) if one["id"] > before]

        wait_until(at_site, within=30, why="the change comes down")
        site.present("entry", card.sent)

        def refused(before=before):
            return [one for one in site.api.events(types=[EventKind.ACCESS_DENIED]) if one["id"] > before]

        denied = wait_until(refused, within=30, why="the lane refuses the card")
        took = watch.seconds()
        print(f"{reason}: refused at the lane {took:.1f} s after central took it away")
        assert reason in denied[0]["description"]
        assert took < PULL_SECONDS + PULL_TAKES + REFUSAL_SECONDS
