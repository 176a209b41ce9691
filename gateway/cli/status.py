"""`edge-gateway status`: the site in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from gateway.cli.printing import print_json
from gateway.cli.site_now import PATH, LaneNow, SiteAnswer, SiteNow
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.problems import ProblemKind

_NOT_READY = 1


def status(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show the site in a few lines: lanes, devices, cameras, central. The exit status is 1 when a lane cannot work.

    Example: edge-gateway status
    """
    with connected(data, url) as gateway:
        told = gateway.asked(PATH)
    site = gateway.read(SiteAnswer, told).snapshot
    if as_json:
        print_json(told)
    else:
        typer.echo("\n".join(_lines(site)))
    if not site.gateway.ready:
        raise typer.Exit(_NOT_READY)


def _lines(site: SiteNow) -> Iterator[str]:
    yield f"{site.gateway.site}: {site.gateway.headline} (edge-gateway {site.gateway.version})"
    for lane in site.lanes:
        yield f"lane     {lane.name}: {lane_words(lane)}"
    away = [device.name for device in site.devices if device.online is not True]
    yield f"devices  {_share(len(site.devices), away)} answer{_not(away)}"
    silent = [camera.name for camera in site.cameras if camera.condition != "recording"]
    yield f"cameras  {_share(len(site.cameras), silent)} record{_not(silent)}"
    for area in site.areas:
        limit = "" if area.limit is None else f" of {area.limit}"
        yield f"area     {area.name}: {area.count}{limit} inside"
    if site.storage is not None:
        yield f"footage  {site.storage.text}"
    if site.central is not None:
        refuses = any(notice.kind == ProblemKind.CENTRAL_SIGN_IN_REFUSED for notice in site.central.notices)
        answers = "answers, but refuses the sign-in" if refuses else "answers"
        state = {True: answers, False: f"does not answer: {site.central.error}", None: "not asked yet"}
        waits = "" if site.books is None else f"; records waiting: {site.books.waiting}, refused: {site.books.parked}"
        yield f"central  {state[site.central.reachable]}{waits}"


def lane_words(lane: LaneNow) -> str:
    """Return a lane's state in one line: its gate, its phase, standing order, and troubles."""
    words = [f"gate {lane.position}"]
    if lane.phase != "idle" or not (lane.unable or lane.troubles):
        words.append(lane.phase)
    words += [words_of for words_of in (lane.order_text, lane.note) if words_of]
    words += [f"CANNOT WORK: {trouble.text}" for trouble in lane.unable]
    words += [trouble.text for trouble in lane.troubles if trouble not in lane.unable]
    return ", ".join(words)


def _share(count: int, missing: list[str]) -> str:
    return f"{count - len(missing)} of {count}"


def _not(names: list[str]) -> str:
    return f", not: {', '.join(names)}" if names else ""
