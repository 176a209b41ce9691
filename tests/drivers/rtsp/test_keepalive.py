"""A session is kept alive in whatever way its camera wants, and each camera teaches it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from drivers.rtsp.client.habits import KeepAlive, KeepAliveHabits

STEP = 0.5


@dataclass
class Wants:
    """A camera's wants: the methods that count, and its answer to each: a status, None for silence, 0 to hang up."""

    counts: tuple[str, ...]
    answers: Callable[[str], int | None] = lambda _method: 200
    listed: bool = True
    told: float = 60.0
    timeout: float = 60.0


def session(wants: Wants, habits: KeepAliveHabits, *, seconds: float) -> tuple[float, KeepAliveHabits]:
    """Run one session for at most so many seconds; return how long it lasted, and what it taught."""
    keepalive = KeepAlive(listed=wants.listed, timeout=wants.told, habits=habits, now=0.0)
    now = alive = 0.0
    while now < seconds:
        now += STEP
        if now - alive > wants.timeout:
            return now, keepalive.ended(now, hung_up=True)
        if method := keepalive.due(now):
            if method in wants.counts:
                alive = now
            status = wants.answers(method)
            if status == 0:
                return now, keepalive.ended(now + 0.1, hung_up=True)
            if status is not None:
                keepalive.answered(status, now + 0.1)
    return now, keepalive.habits


CAMERAS = {
    "plain": (Wants(("OPTIONS", "GET_PARAMETER")), 0),
    "GET_PARAMETER is listed and never answered": (
        Wants(("OPTIONS",), lambda method: 200 if method == "OPTIONS" else None, told=10, timeout=11),
        0,
    ),
    "GET_PARAMETER is listed and refused": (
        Wants(("OPTIONS",), lambda method: 200 if method == "OPTIONS" else 501),
        0,
    ),
    "it hangs up at GET_PARAMETER": (Wants(("OPTIONS",), lambda method: 200 if method == "OPTIONS" else 0), 1),
    "it hangs up at OPTIONS, and refuses GET_PARAMETER, which counts": (
        Wants(("GET_PARAMETER",), lambda method: 501 if method == "GET_PARAMETER" else 0),
        1,
    ),
    "it hangs up at OPTIONS": (
        Wants(("GET_PARAMETER",), lambda method: 200 if method == "GET_PARAMETER" else 0, listed=False),
        1,
    ),
    "only GET_PARAMETER counts, and is not listed": (Wants(("GET_PARAMETER",), listed=False), 1),
    "only OPTIONS counts, although GET_PARAMETER is listed and answered": (Wants(("OPTIONS",)), 1),
    "it answers nothing while it plays": (Wants(("OPTIONS", "GET_PARAMETER"), lambda _method: None), 0),
    "it refuses everything, and counts it all the same": (Wants(("OPTIONS", "GET_PARAMETER"), lambda _method: 400), 0),
    "it ends sooner than it said": (Wants(("OPTIONS", "GET_PARAMETER"), told=60, timeout=15), 2),
    "it ends sooner, and only the other method counts": (Wants(("GET_PARAMETER",), listed=False, timeout=20), 2),
    "it says nothing of a time-out of 10 s that only one method keeps up": (
        Wants(("OPTIONS",), told=60, timeout=11),
        2,
    ),
    "only SET_PARAMETER counts": (Wants(("SET_PARAMETER",)), 1),
    "only the method that is never answered counts": (
        Wants(("GET_PARAMETER",), lambda method: 200 if method == "OPTIONS" else None),
        1,
    ),
    "only the method that is refused counts": (
        Wants(("GET_PARAMETER",), lambda method: 200 if method == "OPTIONS" else 501),
        1,
    ),
    "it hangs up at SET_PARAMETER, and only the method that is not listed counts": (
        Wants(("GET_PARAMETER",), lambda method: 0 if method == "SET_PARAMETER" else 200, listed=False),
        2,
    ),
    "a short time-out": (Wants(("GET_PARAMETER",), listed=False, told=10, timeout=11), 1),
}


@pytest.mark.parametrize("name", CAMERAS)
def test_each_camera_is_kept_alive_after_it_has_taught_how(name):
    wants, most_lost = CAMERAS[name]
    habits = KeepAliveHabits()
    lost = 0
    lasted = 0.0
    while lasted < 600:
        lasted, habits = session(wants, habits, seconds=600)
        lost += lasted < 600
        assert lost <= most_lost, f"a session of {lasted} s"


def test_a_camera_that_is_well_is_asked_no_more_often_than_it_needs():
    asked = []
    session(
        Wants(("OPTIONS",), lambda method: asked.append(method) or 200, listed=False), KeepAliveHabits(), seconds=600
    )
    assert asked == ["OPTIONS"] * 25


def test_a_power_cut_does_not_spoil_what_was_learned():
    """The only method that works is in flight when the camera loses its power."""
    wants = Wants(("OPTIONS",), lambda method: 200 if method == "OPTIONS" else 0)
    habits = KeepAliveHabits(hangs_up=frozenset({"GET_PARAMETER"}))
    cut = Wants(("OPTIONS",), lambda _method: 0)
    _, habits = session(cut, habits, seconds=600)
    lost = 0
    for _ in range(3):
        lasted, habits = session(wants, habits, seconds=600)
        lost += lasted < 600
    assert lost <= 1


def test_silence_of_the_camera_is_not_blamed_on_a_request():
    keepalive = KeepAlive(listed=True, timeout=60.0, habits=KeepAliveHabits(), now=0.0)
    assert keepalive.due(24.0) == "GET_PARAMETER"
    assert keepalive.ended(24.5, hung_up=False).hangs_up == frozenset()


def test_a_request_without_proof_is_repeated():
    keepalive = KeepAlive(listed=True, timeout=60.0, habits=KeepAliveHabits(), now=0.0)
    assert keepalive.due(24.0)
    keepalive.answered(401, 24.1)
    keepalive.again(25.0)
    assert keepalive.due(25.0) == "GET_PARAMETER"
