"""The places of a listener in virtual time: who gets one, who is closed for whom, and what is told."""

from __future__ import annotations

import asyncio
import time

import pytest

from drivers.listening.places import Bounds, Ending, Places, Stage

BOUNDS = Bounds(most=64, per_address=32, for_known=8, for_configured=8)
OURS, KNOWN, STRANGER, OTHER = "127.0.0.1", "192.0.2.20", "198.51.100.1", "198.51.100.2"


class Peer(asyncio.Transport):
    """A transport that knows where it comes from."""

    def __init__(self, host: str) -> None:
        super().__init__({"peername": (host, 1)})
        self.unsent = 0
        self._closing = False

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Door:
    """A listener's places, its time, and what came to it."""

    def __init__(self, bounds=BOUNDS):
        self.now = 0.0
        self.places = Places(bounds=bounds, monotonic=lambda: self.now, is_configured=lambda host: host == OURS)

    def come(self, host, count=1, *, stage=Stage.HEAD):
        """Let so many connections come; return those that were admitted."""
        came = []
        for _ in range(count):
            place = self.places.admit(Peer(host))
            if place is not None:
                place.move(stage, now=self.now)
                came.append(place)
        return came

    def has_room_for(self, host):
        return len(self.come(host)) == 1


@pytest.mark.parametrize("stage", list(Stage))
def test_two_addresses_that_take_all_they_get_keep_this_machine_and_a_third_one_in(stage):
    """Also by answers that they never read, and at once."""
    door = Door()
    door.come(STRANGER, 100, stage=stage)
    door.come(OTHER, 100, stage=stage)
    assert door.has_room_for(OURS)
    assert door.has_room_for("198.51.100.3")
    assert door.has_room_for(OURS)


@pytest.mark.parametrize("stage", list(Stage))
def test_known_addresses_that_take_all_they_get_keep_this_machine_in(stage):
    door = Door()
    for host in (KNOWN, "192.0.2.21"):
        door.places.know(host)
        door.come(host, 100, stage=stage)
    assert all(door.has_room_for(OURS) for _ in range(8))


@pytest.mark.parametrize("stage", list(Stage))
def test_this_machines_other_addresses_that_take_all_they_get_keep_nobody_out(stage):
    """A program of this machine may run wild as well; addresses of 127.0.0.0/8 are configured ones."""
    door = Door()
    door.places = Places(bounds=BOUNDS, monotonic=lambda: door.now, is_configured=lambda _: True)
    door.come("127.0.0.2", 100, stage=stage)
    door.come("127.0.0.3", 100, stage=stage)
    assert door.has_room_for(OURS)


def test_strangers_leave_places_to_known_ones_and_both_to_configured_ones():
    door = Door()
    door.places.know(KNOWN)
    strangers = sum(len(door.come(f"198.51.100.{number}", 2)) for number in range(1, 60))
    assert strangers == 64 - 16
    assert sum(door.has_room_for(KNOWN) for _ in range(20)) == 8
    assert sum(door.has_room_for(OURS) for _ in range(20)) == 8


def test_the_slowest_head_goes_first_and_an_answer_last():
    door = Door()
    answered = door.come(STRANGER, 8, stage=Stage.ANSWER)
    idle = door.come(STRANGER, 8, stage=Stage.IDLE)
    first = door.come(STRANGER, 1)
    door.now = 0.5
    later = door.come(STRANGER, 15)
    door.now = 2.0
    for expected in (first, later, idle):
        for _ in expected:
            assert door.has_room_for(STRANGER)
        door.places.close_late()
        assert all(place.transport.is_closing() for place in expected)
    assert not any(place.transport.is_closing() for place in answered)


def test_a_head_has_ten_seconds_and_a_kept_connection_its_own_time():
    door = Door()
    came = [*door.come(STRANGER), *door.come(OTHER, stage=Stage.IDLE), *door.come(OURS, stage=Stage.ANSWER)]
    for now, left in ((10.0, 3), (10.5, 2), (77.0, 2), (77.5, 1)):
        door.now = now
        door.places.close_late()
        assert [one.transport.is_closing() for one in came] == [True] * (3 - left) + [False] * left


def test_idleness_begins_when_the_answer_is_sent():
    """Also where the rest of it still lies in the buffer of a slow client after the last byte was written."""
    door = Door()
    (place,) = door.come(STRANGER)
    place.stage_now = lambda: Stage.ANSWER if place.transport.unsent else Stage.IDLE
    place.transport.unsent = 30_000_000
    for now in range(1, 200):
        door.now = float(now)
        door.places.close_late()
    place.transport.unsent = 0
    for now in range(200, 277):
        door.now = float(now)
        door.places.close_late()
    assert not place.transport.is_closing()
    door.now = 279.0
    door.places.close_late()
    assert place.transport.is_closing()


def test_a_crowd_is_told_with_its_greatest_address_for_a_minute():
    door = Door()
    door.come(STRANGER, 32)
    door.come(OTHER, 10)
    assert door.places.crowd is None
    door.come("198.51.100.3", 10)
    crowd = door.places.crowd
    assert (crowd.turned_away, crowd.address, crowd.places) == (4, STRANGER, 30)
    door.now = 61.0
    assert door.places.crowd is None


def test_a_crowd_is_told_as_it_was_when_it_has_gone():
    door = Door()
    crowding = [*door.come(STRANGER, 30), *door.come(OTHER, 30)]
    told = door.places.crowd
    assert told is not None
    for place in crowding:
        place.transport.close()
    door.places.close_late()
    assert door.places.crowd == told
    assert told.address in {STRANGER, OTHER}
    assert told.places > 8


def test_a_crowd_of_many_addresses_names_none():
    door = Door()
    for number in range(1, 91):
        door.come(f"198.51.{number}.1", 1)
    crowd = door.places.crowd
    assert crowd is not None
    assert (crowd.address, crowd.places) == ("", 48)


def test_an_address_at_its_own_bound_is_no_crowd():
    door = Door()
    door.come(STRANGER, 40)
    assert door.places.crowd is None


def test_last_words_are_said():
    door = Door()
    (place,) = door.come(STRANGER)
    said = []
    place.last_words = lambda ending: said.append(ending) or b""
    door.now = 11.0
    door.places.close_late()
    assert said == [Ending.LATE]


@pytest.mark.long("processor time, in real time")
def test_whoever_asks_for_a_place_again_and_again_costs_the_loop_little():
    """Lanes share the loop with whoever knocks."""
    door = Door(Bounds(most=256, per_address=128, for_known=48, for_configured=16))
    for number in range(192):
        door.come(f"192.0.2.{1 + number % 2}")
    began = time.process_time()
    for _ in range(200):
        door.has_room_for("192.0.2.3")
    assert time.process_time() - began < 200 * 0.002
