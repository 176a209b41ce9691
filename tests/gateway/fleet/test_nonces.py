"""Nonces of commands: dated by the gateway, used once, and made by nobody else."""

from __future__ import annotations

import pytest
from set_machine import SetClock

from gateway.domain.errors import CommandRefused
from gateway.fleet.signed_commands import LATE, Nonces, is_seal_of, seal_of

LONGEST = 60.0


@pytest.fixture
def clock():
    return SetClock(1000.0)


@pytest.fixture
def nonces(clock):
    return Nonces(clock=clock, longest_seconds=LONGEST)


def test_a_life_begins_when_the_gateway_gave_the_nonce_however_late_its_sender_got_it(nonces, clock):
    """The server holds the answer back for 85 s: the command is signed then, and is over."""
    nonce = nonces.issue()
    clock.seconds += 8
    assert nonces.use(nonce, seconds=10) == pytest.approx(1010)
    held = nonces.issue()
    clock.seconds += 85
    for seconds in (10, LONGEST):
        with pytest.raises(CommandRefused, match=LATE):
            nonces.use(held, seconds=seconds)


def test_a_nonce_counts_once(nonces, clock):
    nonce = nonces.issue()
    nonces.use(nonce, seconds=10)
    for later in (0, 5, LONGEST):
        clock.seconds += later
        with pytest.raises(CommandRefused, match=f"used for another|{LATE}"):
            nonces.use(nonce, seconds=LONGEST)


def test_nonces_of_one_moment_differ(nonces):
    assert len({nonces.issue() for _ in range(1000)}) == 1000


def _younger(nonce: str) -> str:
    date, rest = nonce.split(".", 1)
    return f"{int(date) + 85_000_000}.{rest}"


@pytest.mark.parametrize(
    "made_up",
    [
        _younger,
        lambda nonce: nonce[:-1] + ("0" if nonce[-1] != "0" else "1"),
        lambda nonce: nonce.rpartition(".")[0],
        lambda nonce: nonce.rpartition(".")[0] + ".",
        lambda nonce: nonce + "0",
        lambda nonce: " " + nonce,
        lambda nonce: nonce.upper() + ".",
        lambda nonce: "." + nonce,
        lambda nonce: nonce.replace(".", "..", 1),
        lambda _: "x",
        lambda _: "..",
        lambda _: "9" * 5000 + ".a.b",
        lambda _: "é.ü.\ud800".encode("utf-8", "replace").decode(),
    ],
)
def test_a_nonce_that_somebody_made_up_or_changed_is_refused(nonces, made_up):
    nonce = nonces.issue()
    with pytest.raises(CommandRefused, match="started after the command was made"):
        nonces.use(made_up(nonce), seconds=10)
    nonces.use(nonce, seconds=10)


def test_a_nonce_of_an_earlier_run_is_refused(nonces, clock):
    with pytest.raises(CommandRefused, match="started after the command was made"):
        nonces.use(Nonces(clock=clock, longest_seconds=LONGEST).issue(), seconds=10)


def test_edits_that_take_a_command_back_are_known_again_and_no_others():
    seal = seal_of(b"key", "fleet-anna-1", b"[]")
    assert is_seal_of(seal, b"key", "fleet-anna-1", b"[]")
    for changed in (("", b"key", "fleet-anna-1", b"[]"), (seal, b"other", "fleet-anna-1", b"[]")):
        assert not is_seal_of(*changed)
    assert not is_seal_of(seal, b"key", "fleet-anna-2", b"[]")
    assert not is_seal_of(seal, b"key", "fleet-anna-1", b"[1]")
    assert not is_seal_of("é", b"key", "fleet-anna-1", b"[]")
