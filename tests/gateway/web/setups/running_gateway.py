"""The real application on a free port over a real store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from ipaddress import ip_network
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from aiohttp import ClientSession, web
from certificates import Pair
from set_machine import PushedClock
from wired import central_writes, parked_rows

from gateway.central.client.client import CentralClient
from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import GapReason, SegmentFinished
from gateway.domain.passages import Moment
from gateway.domain.server_lines import BrokerStatus, ConnectionState, FleetSeen, FleetStatus
from gateway.lanes.incidents import Incidents
from gateway.lanes.presence import Areas
from gateway.lanes.recorder import Recorder
from gateway.lines.frames import PolledLine
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.problems.problem import Acknowledgement, Problem, Verdict
from gateway.proof_package.of_events import ProofPackages
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.recording.viewing import Viewing
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.redaction import Redaction
from gateway.site.api_section import TlsSection
from gateway.site.models import Site
from gateway.store import Entry, KnownRecord, RecordTimes, Store, StoredCard
from gateway.support.bundle import SupportBundle, SupportContext
from gateway.support.masking import Masking
from gateway.texts import Words
from gateway.web.app import Interface
from gateway.web.auth.api_keys import key_hash
from gateway.web.auth.central_sign_in import CentralAccounts
from gateway.web.context import InterfaceContext
from gateway.web.families import Route
from gateway.web.http.server import serve
from gateway.web.relayed.relay import Relay
from gateway.web.status.snapshot import DemoCard
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.registry import WebhookRegistry
from tests.gateway.web.setups.accounts import GUARDS, KEYS, ROLES
from tests.gateway.web.setups.central import CentralInMemory
from tests.gateway.web.setups.field import ASKED_LINE, FieldInMemory
from tests.gateway.web.setups.footage import Footage, FootageOnDisk
from tests.gateway.web.setups.site import CENTRAL, SITE, START


@dataclass
class Gateway:
    """The running gateway as a client meets it."""

    url: str
    store: Store
    board: FieldInMemory
    recording: FootageOnDisk
    central: CentralInMemory
    clock: PushedClock
    client: ClientSession
    problems: list[Problem]
    loop: LoopWatch
    stop: Callable[[], bool]
    camera_event_id: int = 0
    tokens: dict[str, str] = field(default_factory=dict)

    async def sign_in(self, username: str = "chief") -> dict[str, str]:
        """The headers of a session of that account."""
        if username not in self.tokens:
            async with self.client.post(
                f"{self.url}/v1/auth/login", json={"username": username, "password": username}
            ) as answer:
                assert answer.status == 200, await answer.text()
                self.tokens[username] = (await answer.json())["session"]
        return {"SessionID": self.tokens[username]}

    async def call(self, path: str, body: object = None, *, method: str = "POST", user: str = "chief", **headers: str):
        """Status and JSON of one call; `Sent_At="…"` is a header."""
        headers = {name.replace("_", "-"): text for name, text in headers.items()}
        headers |= await self.sign_in(user) if user else {}
        sent = {"json": body} if body is not None else {}
        async with self.client.request(method, self.url + path, headers=headers, **sent) as answer:
            return answer.status, await answer.json()

    async def program(self, method: str, path: str, body: object = None, *, key: str = "till"):
        """Status and JSON of one call of a program; without a key when it is ""."""
        headers = {"Authorization": f"Bearer key-of-{key}"} if key else {}
        sent = {"json": body} if body is not None else {}
        async with self.client.request(method, self.url + path, headers=headers, **sent) as answer:
            return answer.status, await answer.json()

    async def happened(
        self, description: Words, *, kind: EventKind = EventKind.VEHICLE_PASSED, date_at: int | None = None, **more
    ) -> int:
        """Record an event and return its id."""
        event = Event(
            kind=kind,
            date_at=date_at or self.clock.wall().micros,
            clock_trusted=True,
            text=description,
            lane_id="entry",
            **more,
        )
        return (await self.store.journal.record(Entry(events=(event,)))).event_ids[0]

    async def passed(
        self, description: str = "A vehicle passed.", *, footage_seconds: float = 10, ready: bool = True
    ) -> int:
        """Record a passage with the last so many of its ten seconds of footage; returns the camera event's id."""
        now = self.clock.wall().micros
        event = Event(
            kind=EventKind.VEHICLE_PASSED,
            date_at=now,
            clock_trusted=True,
            text=description,
            device_id=101,
            lane_id="entry",
        )
        moment = Moment(201, "Vehicle passed", description, now - 5_000_000, now + 5_000_000, clock_trusted=True)
        recorded = await self.store.journal.record(Entry(events=(event,), moments=(moment,)))
        duration = int(footage_seconds * 1_000_000)
        begin = now + 5_000_000 - duration
        there = SegmentFinished(
            camera_id=201, path=f"201/2026010100/{begin}_{duration}.ts", started_at=begin, clock_trusted=True,
            duration=duration, size=9, gap=GapReason.NETWORK if duration < 10_000_000 else GapReason.NONE,
        )  # fmt: skip
        if duration:
            await self.store.segments.add([there])
        if ready:
            await self.store.camera_events.mark_ready(recorded.camera_event_ids[0])
        return recorded.camera_event_ids[0]


async def _fill(store: Store, hashed: Mapping[str, str]) -> None:
    """Put the site's devices and cameras, one card and the programs' keys into the store."""
    await store.devices.declare(
        [KnownRecord(device.id, device.name, device.driver, at_site=True) for device in SITE.devices], now=START
    )
    await store.cameras.declare(
        [KnownRecord(camera.id, camera.name, "", at_site=True) for camera in SITE.cameras], now=START
    )
    record = {
        "id": 4001,
        "number": "00111572",
        "username": "ada",
        "holder_name": "Ada",
        "plate": "DM 001",
        "pin": "4711",
    }
    card = StoredCard(map_card(4001, record, CardFieldMap(), UTC), json.dumps(record))
    await store.cards.apply(put=[card], now=START)
    if not await store.accounts.all():  # a test may open the gateway again
        for role, permissions in GUARDS.items():
            await store.accounts.put_role(role, permissions)
        for name, password_hash in hashed.items():
            await store.accounts.add(name, password_hash=password_hash, role=ROLES[name], now=START)
    known = {key.name for key in await store.api_keys.all()}
    for name, permissions in KEYS.items():
        if name not in known:
            await store.api_keys.add(
                name, key_hash=key_hash(f"key-of-{name}"), permissions=permissions, now=START, expires_at=None
            )


async def _recording(footage: Footage, store: Store, clock: PushedClock, *, folder: Path) -> FootageOnDisk:
    limits = EvidenceLimits(bytes_each=3_000_000, per_event=3, floor=0)
    shelf = EvidenceFiles(store=store, media=folder, clock=clock, fault=lambda: "", limits=limits)
    await shelf.open()
    return FootageOnDisk(footage, shelf, store)


@asynccontextmanager
async def _served(
    app: web.Application, tls: Pair | None, run_folder: Path
) -> AsyncIterator[tuple[str, Callable[[], bool]]]:
    """Serve the application; yields its address, and a function that stops it."""
    loop = asyncio.get_running_loop()
    port: asyncio.Future[int] = loop.create_future()
    section = None if tls is None else TlsSection(**tls.tls)
    serving = loop.create_task(
        serve(
            app,
            host="127.0.0.1",
            port=0,
            started=port.set_result,
            failed=lambda why: port.set_exception(AssertionError(why)),
            run_folder=run_folder,
            tls=section,
        )
    )
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{await port}", serving.cancel
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


OpenGateway = Callable[..., "asynccontextmanager[Gateway]"]


@pytest.fixture
def open_gateway(tmp_path: Path, footage: Footage, hashed: Mapping[str, str]) -> OpenGateway:
    """Opens the gateway, with more routes and demo cards where wanted."""

    @asynccontextmanager
    async def opened(
        routes: tuple[Route, ...] = (),
        cards: tuple[DemoCard, ...] = (),
        viewing: Viewing | None = None,
        relay: Relay | None = None,
        central_accounts: CentralAccounts | None = None,
        site: Site = SITE,
        client: CentralClient | None = None,
        people: CentralAccounts | None = None,
        tls: Pair | None = None,
        lines: Mapping[str, PolledLine] | None = None,
        more_lines: tuple[SiteLine, ...] = (),
        redaction: Redaction | None = None,
        log: Sequence[str] = (),
        fleet_seen: Callable[[str], FleetSeen | None] = lambda _: None,
        broker: Callable[[], BrokerStatus | None] = lambda: None,
        *,
        tells_late: bool = False,
    ) -> AsyncIterator[Gateway]:
        loop = asyncio.get_running_loop()
        clock = PushedClock()
        now = (lambda: clock.wall().micros) if tells_late else None
        store = Store(folder=tmp_path, site_name=SITE.site.name, sends=True, times=RecordTimes(now=now))
        await store.open()
        committing = loop.create_task(store.run())
        board, central = FieldInMemory(store=store, clock=clock), CentralInMemory()
        await _fill(store, hashed)
        recording = await _recording(footage, store, clock, folder=tmp_path)
        if viewing is not None:
            recording.viewing = viewing
        recorder = Recorder(journal=store.journal, clock=clock)
        areas = Areas(site=SITE, cards=store.cards, rows=store.presence, recorder=recorder, clock=clock)
        recording_lanes = loop.create_task(recorder.run())
        site_lines = SiteLines.of(lines or {}, clock=clock)
        scanning = loop.create_task(site_lines.scans.run())
        loop_watch = LoopWatch()
        problems: list[Problem] = []

        def acknowledge(key: tuple[str, ...], *, by: str, silent_seconds: float = 0.0) -> None:
            if key not in [problem.key for problem in problems]:
                raise NotFoundError("this problem is over")
            now = clock.wall().micros
            said = Acknowledgement(by, now, now + int(silent_seconds * 1e6) if silent_seconds else 0)
            problems[:] = [
                replace(problem, acknowledged=said) if problem.key == key else problem for problem in problems
            ]
            store.changes.bump()

        receiver_client = ReceiverClient(allowed=(ip_network("127.0.0.0/8"),), timeout_seconds=2)
        incidents = Incidents(folder=tmp_path / "incidents", clock=clock, incident=board.incident)

        fleet = FleetStatus(state=ConnectionState.CONNECTED, since=clock.wall().micros, name="north.gate-1")

        def site_state() -> SiteState:
            return SiteState(
                lanes=board.lanes(),
                devices=board.devices(),
                cameras=recording.cameras(),
                storage=recording.storage(),
                central=central.snapshot(),
                store_failing="",
                interface_fault="",
                site_notices=(),
                clock_trusted=True,
                now=clock.wall().micros,
                lines=(SiteLine(ASKED_LINE, {7: (101,)}), *more_lines),
                fleet=fleet if fleet_seen("") else None,
                broker=broker(),
            )

        def verdict() -> Verdict:
            return Verdict(tuple(problems), lanes=len(SITE.lanes))

        told = SupportContext(
            site_path=tmp_path / "site.toml",
            data=tmp_path,
            verdict=verdict,
            state=site_state,
            lines=site_lines,
            events=store.events,
            incidents=incidents,
            log=lambda: tuple(log),
            masking=Masking(redaction or Redaction()),
            clock=clock,
        )
        support = SupportBundle(told)
        context = InterfaceContext(
            site=site if people is None else site.model_copy(update={"central": CENTRAL}),
            store=store,
            lanes=board,
            areas=areas,
            recording=recording,
            central=central,
            writes=central_writes(client=client, store=store, clock=clock, zone=ZoneInfo(SITE.site.timezone)),
            clock=clock,
            started_at=clock.monotonic(),
            guessable={},
            data=tmp_path,
            verdict=verdict,
            acknowledge=acknowledge,
            incidents=incidents,
            lines=site_lines,
            loop=loop_watch,
            support=support,
            proofs=ProofPackages.of(
                store, recording=recording, folder=tmp_path, site_name=lambda: SITE.site.name, clock=clock
            ),
            site_state=site_state,
            outbox=parked_rows(store=store, clock=clock),
            webhooks=WebhookRegistry(webhooks=store.webhooks, client=receiver_client, clock=clock),
            central_accounts=people or central_accounts,
            demo_cards=cards,
            fleet_seen=fleet_seen,
        )
        app = Interface(context, relay=relay, extra_routes=routes).build()
        try:
            async with _served(app, tls, tmp_path / "run") as (url, stop), ClientSession() as client:
                gateway = Gateway(
                    url=url,
                    store=store,
                    board=board,
                    recording=recording,
                    central=central,
                    clock=clock,
                    client=client,
                    problems=problems,
                    loop=loop_watch,
                    stop=stop,
                )
                gateway.camera_event_id = await gateway.passed()
                yield gateway
        finally:
            receiver_client.close()
            for task in (scanning, recording_lanes, committing):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await store.close()

    return opened


@pytest.fixture
async def gateway(open_gateway: OpenGateway) -> AsyncIterator[Gateway]:
    async with open_gateway() as opened:
        yield opened
