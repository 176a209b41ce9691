"""The places of a listener: no address can take all of them, and slow clients are closed to make room for others.

A connection passes through stages. What waits for the first byte, or for the rest of a head, has a deadline, and goes
first when room is needed; a client that is being answered goes last. Some places are kept for addresses that the site
file names, and for those from which somebody has proved who they are.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto

from drivers.listening.addresses import counted_as

HEAD_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 75
SLOW_SECONDS = 1.0
LOOK_SECONDS = 1.0
_KEEP_ALIVE_GRACE = 2.0  # a client that reuses a connection at the last moment must find it open
_LONG_ANSWER_SECONDS = 30.0
_KNOWN_SECONDS = 3600.0
_MOST_KNOWN = 1024
_FULL_SECONDS = 60.0
_FAIR_PART = 8
"""An address that holds more than this part of all places may lose one at once to an address that holds fewer."""


class Stage(IntEnum):
    """Stage of a connection, by what it waits for. Lower stages are closed first when room is needed."""

    HEAD = 0
    """The TLS handshake, or the head of a request."""
    BODY = 1
    """The rest of a request's body."""
    IDLE = 2
    """The next request on a kept-alive connection."""
    ANSWER = 3
    """The answer, until all of it is sent. After 30 s a stranger's may be closed for others."""


class Standing(IntEnum):
    """The standing of an address; higher ones have places that lower ones cannot take."""

    STRANGER = 0
    KNOWN = 1
    """Somebody has proved from there who they are, within the last hour."""
    CONFIGURED = 2
    """The site file names it, or it is this machine."""


class Ending(Enum):
    """The reason for which a connection is closed."""

    LATE = auto()
    """Its head, or its next request, did not come in time."""
    FOR_ROOM = auto()
    """Another connection needed its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The number of places of a listener.

    Attributes:
        most: all of them.
        per_address: those that one address may have.
        for_known: those that strangers cannot take.
        for_configured: those that only configured addresses can take.
    """

    most: int
    per_address: int
    for_known: int
    for_configured: int


@dataclass(frozen=True, slots=True)
class Crowd:
    """The callers of a listener without room.

    Attributes:
        turned_away: the connections that were refused, or closed for others, since the listener became full.
        address: the address that had the most places when the listener was last full; "" when many shared them, and
            none had more than its fair part.
        places: the places of that address, or of all.
    """

    turned_away: int
    address: str
    places: int


@dataclass(slots=True, eq=False)
class Place:
    """One admitted connection.

    Attributes:
        transport: its transport; the TLS transport once the handshake is done.
        host: the address that it counts as; for IPv6 the /64 network.
        since: the monotonic time at which its stage began.
        stage_now: its stage, where the stage follows from something else; None where `move` sets it.
        last_words: returns what the client is told when it is closed; nothing for b"".
        was_answering: whether an answer was being sent at the last look, so that idleness begins only now.
    """

    transport: asyncio.Transport
    host: str
    since: float
    stage_now: Callable[[], Stage] | None = None
    last_words: Callable[[Ending], bytes] | None = None
    was_answering: bool = False
    _stage: Stage = field(default=Stage.HEAD)

    @property
    def stage(self) -> Stage:
        """Its present stage."""
        return self._stage if self.stage_now is None else self.stage_now()

    def move(self, stage: Stage, *, now: float) -> None:
        """Set its stage."""
        self._stage, self.since = stage, now

    def close(self, ending: Ending) -> None:
        """Close the connection, with its last words."""
        words = b"" if self.last_words is None else self.last_words(ending)
        if words and not self.transport.is_closing():
            self.transport.write(words)
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.transport.abort()


class Places:
    """The places of one listener."""

    def __init__(
        self,
        *,
        bounds: Bounds,
        monotonic: Callable[[], float],
        is_configured: Callable[[str], bool],
        is_proxy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Take the rules.

        Args:
            bounds: the number of places.
            monotonic: the clock of stages.
            is_configured: whether the site file names an address, or it is this machine's.
            is_proxy: whether an address stands for many clients: it is configured, and has no bound of its own.
        """
        self._bounds = bounds
        self._monotonic = monotonic
        self._is_configured = is_configured
        self._is_proxy = is_proxy
        self._places: set[Place] = set()
        self._known: OrderedDict[str, float] = OrderedDict()
        self._full_at = float("-inf")
        self._crowd = Crowd(0, "", 0)

    def admit(self, transport: asyncio.Transport) -> Place | None:
        """Admit a new connection, closing a slower one if needed; None when no place can be made."""
        self._places = {one for one in self._places if not one.transport.is_closing()}
        peer = transport.get_extra_info("peername")
        host = counted_as(str(peer[0])) if isinstance(peer, tuple) else ""
        held = Counter(one.host for one in self._places)
        place = Place(transport, host, self._monotonic())
        crowded_host = held[host] >= self._bounds.per_address and not self._is_proxy(host)
        if (crowded_host or not self._has_room(host, held)) and not self._make_room(host, held, within=crowded_host):
            return None
        self._places.add(place)
        return place

    def leave(self, place: Place) -> None:
        """Free a place at once."""
        self._places.discard(place)

    def know(self, host: str) -> None:
        """Note that somebody has proved from this address who they are."""
        self._known[host] = self._monotonic() + _KNOWN_SECONDS
        self._known.move_to_end(host)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def now(self) -> float:
        """Return the time of stages."""
        return self._monotonic()

    async def run(self) -> None:
        """Close connections whose head (10 s) or next request (77 s) does not come in time, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.close_late()

    def close_late(self) -> None:
        """Close the connections that are late now."""
        now = self._monotonic()
        patience = {Stage.HEAD: HEAD_SECONDS, Stage.IDLE: KEEP_ALIVE_SECONDS + _KEEP_ALIVE_GRACE}
        for one in tuple(self._places):
            if one.stage is Stage.ANSWER:
                one.was_answering = True
            elif one.was_answering:
                one.was_answering, one.since = False, now
            elif now - one.since > patience.get(one.stage, float("inf")):
                one.close(Ending.LATE)
        self._places = {one for one in self._places if not one.transport.is_closing()}

    @property
    def crowd(self) -> Crowd | None:
        """The crowd of the last minute; None while there was room for everybody."""
        return None if self._monotonic() - self._full_at > _FULL_SECONDS else self._crowd

    def _standing(self, host: str) -> Standing:
        if self._is_configured(host) or self._is_proxy(host):
            return Standing.CONFIGURED
        until = self._known.get(host)
        return Standing.KNOWN if until is not None and until > self._monotonic() else Standing.STRANGER

    def _has_room(self, host: str, held: Counter[str]) -> bool:
        standing, bounds = self._standing(host), self._bounds
        kept = 0 if standing is Standing.CONFIGURED else bounds.for_configured
        kept += bounds.for_known if standing is Standing.STRANGER else 0
        no_better = sum(count for other, count in held.items() if self._standing(other) <= standing)
        return no_better < bounds.most - kept and held.total() < bounds.most

    def _make_room(self, host: str, held: Counter[str], *, within: bool) -> bool:
        """Close the slowest connection that may be closed for a newcomer; return whether there was one.

        `within`: the newcomer's address has all places that it may have, so one of its own connections must go.
        """
        now, mine = self._monotonic(), self._standing(host)
        if not within:
            self._note_full(now, held)
        standings = {other: self._standing(other) for other in held}
        fair = self._bounds.most // _FAIR_PART

        def patience(one: Place) -> float:
            """Return the seconds in its stage after which a connection may be closed for the newcomer."""
            if held[one.host] > fair > held[host] and not self._is_proxy(one.host):
                return 0.0
            if one.stage is not Stage.ANSWER:
                return SLOW_SECONDS
            theirs = standings[one.host]
            return _LONG_ANSWER_SECONDS if theirs is Standing.STRANGER or theirs < mine else float("inf")

        slow = [
            one
            for one in self._places
            if (one.host == host if within else standings[one.host] <= mine) and now - one.since >= patience(one)
        ]
        if not slow:
            return False
        slowest = min(slow, key=lambda one: (standings[one.host], one.stage, one.since, -held[one.host]))
        slowest.close(Ending.FOR_ROOM)
        self._places.discard(slowest)
        return True

    def _note_full(self, now: float, held: Counter[str]) -> None:
        before = self.crowd
        turned_away = 1 if before is None else before.turned_away + 1
        address, places = max(held.items(), key=lambda one: one[1], default=("", 0))
        if places <= self._bounds.most // _FAIR_PART:
            address, places = "", held.total()
        self._crowd, self._full_at = Crowd(turned_away, address, places), now
