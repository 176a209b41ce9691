"""Central of a simulated site: the simulated service without a port, and what a life of the gateway sends to it."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Protocol

import aiohttp

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.push.outbox import OutboxSender, SendRound
from gateway.central.push.upstream import upstream
from gateway.central.site_cards import SiteCards
from gateway.domain.credentials import CardStatus
from gateway.domain.writes import site_id_in
from gateway.lanes import Lanes
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount, Chances, Faults
from simulation.far_ends.central.answers import Call, JsonObject
from simulation.far_ends.central.service import Dialect, OnWrite
from simulation.virtual_site import observations as seen
from simulation.virtual_site.scene import START_MICROS, bad_cards, gate_id, good_cards, reader_id
from simulation.virtual_site.virtual_time import VirtualClock
from simulation.virtual_site.wire import Plug, WireConnector
from simulation.virtual_site.witness import Witness

PASSWORD = "simulated"  # noqa: S105 (of a central that is not there)
USERNAME = "gateway"
_FIRST_CAMERA = 900
_CHANCES = Chances(failures=0.02, refusals=0.002, lost_answers=0.013)


def usual_faults(seed: int) -> Faults:
    """Return the faults of a central that fails or loses its answer now and then."""
    return Faults(chances=_CHANCES, seed=seed, latency_seconds=0.02, latency_spread_seconds=0.18)


def central_of(lanes: int, *, clock: VirtualClock, honours_keys: bool = False, on_write: OnWrite) -> Central:
    """Make a central with the devices, cameras and cards of a site."""
    account = CentralAccount(USERNAME, PASSWORD)
    central = Central(
        clock=clock, accounts=(account,), dialect=Dialect(honours_keys=honours_keys), page_cap=100, on_write=on_write
    )
    tables, at = central.tables, iso_utc(START_MICROS)
    for number in range(lanes):
        for device in (gate_id(number), reader_id(number)):
            tables.devices.put({"id": device, "name": f"Device {device}", "type": 3, "created_at": at})
        camera = _FIRST_CAMERA + number
        tables.cameras.put({"id": camera, "name": f"Camera {camera}", "stream": "", "created_at": at})
    for one in (*good_cards(), *bad_cards()):
        status = "active" if one.status is CardStatus.ACTIVE else one.status.value
        until = {"valid_until": iso_utc(one.valid_until)} if one.valid_until is not None else {}
        tables.cards.put({"id": one.card_id, **card(one.number, at=at, **{"status": status, **until})})
    return central


def card(number: str, *, at: str, **fields: str) -> JsonObject:
    """Make a card as central keeps it."""
    return {
        "number": number,
        "type": "proximity",
        "status": "active",
        "holder_name": f"Holder of {number}",
        "note": "",
        "created_at": at,
        "updated_at": at,
        **fields,
    }


class Writes:
    """The writes that central carries out, told to the witness. An instance is a central's `on_write`."""

    def __init__(self, *, witness: Witness, clock: Clock) -> None:
        self._witness = witness
        self._time = clock.monotonic
        self._changes: dict[str, int] = {}
        self._sources: set[int] = set()

    def __call__(self, call: Call) -> None:
        """Tell one write. A change has no source of its own, and gets a negative number."""
        source = json.loads(call.raw).get("source_id")
        if isinstance(source, int):
            site_id, again = site_id_in(source), source in self._sources
            self._sources.add(source)
        else:
            again = call.key in self._changes
            site_id = self._changes.setdefault(call.key, -1 - len(self._changes))
        self._witness.see(seen.CentralTook(self._time(), call.key, site_id, again))


class WiredClient(CentralClient):
    """The client, over a plug."""

    def __init__(self, *, plug: Plug, clock: Clock) -> None:
        super().__init__(url="http://central.invalid", account=GatewayAccount(USERNAME, PASSWORD), clock=clock)
        self._plug = plug

    def _connector(self, tls: ssl.SSLContext | None) -> aiohttp.BaseConnector:
        del tls
        return WireConnector(self._plug)


class CentralSync(Protocol):
    """The part of one life of the gateway that speaks with central."""

    @property
    def busy(self) -> bool:
        """True while something is being sent, so that time must not jump."""
        ...

    async def recall(self) -> None:
        """Recover after a start, before lanes run. Raises StoreError."""
        ...

    async def run(self) -> None:
        """Synchronise for as long as the life lasts."""
        ...

    def cut(self) -> None:
        """Cut the power: nothing goes out or comes in from this instant on."""
        ...


class OutboxAlone:
    """The outbox without the lists of central. Fulfils `CentralSync`."""

    def __init__(self, *, store: Store, lanes: Lanes, folder: Path, clock: Clock, plug: Plug) -> None:
        del lanes, folder  # of those that have lists and files
        self._plug = plug
        self._client = WiredClient(plug=plug, clock=clock)
        self._sender = OutboxSender(upstream(self._client, SiteCards(store=store, clock=clock)))
        self.busy = False

    async def recall(self) -> None:
        """Do nothing: there is nothing to recall."""

    async def run(self) -> None:
        """Send the outbox until cancelled."""
        try:
            await self._sender.run(self._sent_round)
        finally:
            await self._client.close()

    def cut(self) -> None:
        """Send nothing more."""
        self.busy = False
        self._plug.pull()

    async def _sent_round(self, done: SendRound) -> None:
        self.busy = done.wait == 0
