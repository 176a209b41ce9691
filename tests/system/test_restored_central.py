"""The whole product at a central that lost what it was sent: noticed, told, and made good by a command."""

from __future__ import annotations

import pytest
from forked import done

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")


def sources(site):
    """The site's own numbers of the camera events that central has."""
    listed = site.central("/v1/camera/event/list", page_limit=500)["events"]
    return sorted(event["source_id"] for event in listed if event.get("source_id") is not None)


def test_what_central_lost_is_there_again_after_the_command(make_site, api_of, wait_until):
    site = make_site()
    for lane, card in (("entry", GOOD_CARDS[0]), ("exit", GOOD_CARDS[1])):
        before = site.newest()
        site.present(lane, card.sent)

        def is_over(before=before):
            return EventKind.GATE_CLOSED in site.types_since(before)

        wait_until(is_over, within=40, why="the vehicle passes")
    wait_until(lambda: len(sources(site)) >= 2, within=30, why="central has the camera events")
    had = sources(site)

    central = api_of(0)
    central.base = site.ready.central_url
    central.session = central.call("/v1/auth/login", username="gateway", password="demo")["session"]
    for event in site.central("/v1/camera/event/list", page_limit=500)["events"]:
        assert central.raw("DELETE", "/v1/camera/event", {"id": event["id"]})[0] == 200
    wait_until(
        lambda: site.api.events(types=[EventKind.CENTRAL_SET_BACK]), within=40, why="the site notices what is gone"
    )
    wait_until(
        lambda: any("sync reconcile" in notice["text"] for notice in site.api.call("/status/sync")["sync"]["notices"]),
        within=5,
        why="the notice is shown",
    )

    words = ("sync", "reconcile", "--days", "7", "--data", site.data)
    command = done("gateway", *words)
    assert command.returncode == 0, command.stderr
    assert f"{len(had)} camera events" in command.stdout
    wait_until(lambda: sources(site) == had, within=40, why="central has each of them once")
    wait_until(lambda: not site.api.call("/status/sync")["sync"]["notices"], within=5, why="the notice goes")
