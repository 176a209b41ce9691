"""Limits on ICE's connectivity checks: a far end names places, and this machine sends to them (RFC 8445, 19.5.1)."""

from __future__ import annotations

import re
from typing import Any, Final

import aioice.ice
from aioice import Candidate, Connection

MOST_CHECKS: Final = 100
"""Pairs of addresses that one connection checks, as RFC 8445, 6.1.2.5 has it."""
_add, _check_incoming = Connection.add_remote_candidate, Connection.check_incoming
_SECTION = re.compile(r"^(?=m=)", re.MULTILINE)
_MID = re.compile(r"^a=mid:(\S+)\s*$", re.MULTILINE)
_CANDIDATE, _END = "a=candidate:", "a=end-of-candidates"


def limit_checks() -> None:
    """Limit the checks of every connection of this process. May be called again.

    The library has no setting for this, so two methods of it are replaced. Places that a far end names and places from
    which it sends count alike.
    """
    Connection.add_remote_candidate = _add_while_there_is_room  # type: ignore[method-assign,assignment]
    Connection.check_incoming = _check_incoming_while_there_is_room  # type: ignore[method-assign,assignment]


async def _add_while_there_is_room(connection: Connection, candidate: Candidate | None) -> None:
    if candidate is None or _has_room(connection):
        await _add(connection, candidate)


def _check_incoming_while_there_is_room(
    connection: Connection, message: Any, addr: tuple[str, int], protocol: aioice.ice.StunProtocol
) -> None:
    if _has_room(connection) or any((each.host, each.port) == addr for each in connection.remote_candidates):
        _check_incoming(connection, message, addr, protocol)


def _has_room(connection: Connection) -> bool:
    """Return whether one more far address, paired with each of this machine's, stays within the limit."""
    return (len(connection.remote_candidates) + 1) * max(1, len(connection.local_candidates)) <= MOST_CHECKS


def without_candidates(offer: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split an offer from its candidates, each with its media section's identification tag ("" for none)."""
    kept: list[str] = []
    candidates: list[tuple[str, str]] = []
    for section in _SECTION.split(offer):
        mid = found[1] if (found := _MID.search(section)) else ""
        for line in section.splitlines():
            if line.startswith(_CANDIDATE):
                candidates.append((mid, line.removeprefix(_CANDIDATE)))
            elif not line.startswith(_END):
                kept.append(line)
    return "\r\n".join(kept) + "\r\n", tuple(candidates)


def is_at(candidate: str, address: str) -> bool:
    """Return whether a candidate is for media over UDP at this address, in the form of RFC 8839, 5.1.

    Names are at no address: whoever answers for them could be anybody.
    """
    fields = candidate.split()
    return (
        len(fields) >= 8
        and fields[1] == "1"
        and fields[2].lower() == "udp"
        and fields[5].isascii()
        and fields[5].isdecimal()
        and 0 < int(fields[5][:6]) < 2**16
        and fields[4] == address
    )
