"""Turns on a shared line, pure: commands, then polls, then probes of silent units in the pauses."""

from __future__ import annotations

from drivers.bus.occupancy import LONGEST_PROBE_WAIT, Standings
from drivers.bus.transactions import Priority, Transaction, TransactionQueue
from drivers.contract import MonotonicSeconds


def next_turn(
    queue: TransactionQueue, standings: Standings, *, quiet: float, now: MonotonicSeconds
) -> Transaction | None:
    """Remove and return the next transaction, with its time-out. None when none is due; probes may wait for a
    pause.

    A probe that waited long goes before polls, but no second one before a poll that waits. `quiet` is what the line
    needs to fall silent after a time-out.
    """
    command = queue.first(Priority.COMMAND, now=now)
    if command is not None:
        return queue.take(command)
    poll, probe = queue.first(Priority.POLL, now=now), queue.first(Priority.PROBE, now=now)
    if probe is not None:
        timeout = _probe_timeout(probe, standings, is_alone=poll is None, quiet=quiet, now=now)
        if timeout is not None:
            probe.timeout = timeout
            standings.poll_is_owed = poll is not None
            return queue.take(probe)
    if poll is None:
        return None
    standings.poll_is_owed = False
    if standings.is_live(poll.exchange.unit):
        poll.timeout = standings.live_timeout(poll.exchange.unit, poll.timeout)
    return queue.take(poll)


def _probe_timeout(
    probe: Transaction, standings: Standings, *, is_alone: bool, quiet: float, now: MonotonicSeconds
) -> float | None:
    unit, allowed = probe.exchange.unit, probe.timeout
    if now - probe.added_at >= LONGEST_PROBE_WAIT and (is_alone or not standings.poll_is_owed):
        return standings.late_probe_timeout(unit, allowed, now=now)
    if not is_alone:
        return None
    return standings.probe_timeout(unit, allowed, pause=standings.pause(now=now) - quiet, now=now)
