"""A house to ring at: the real application on a free port over a real store; lanes and footage kept in memory."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from fractions import Fraction
from ipaddress import ip_network
from pathlib import Path
from zoneinfo import ZoneInfo

import av
import pytest
import pytest_asyncio
from aiohttp import ClientSession
from argon2 import PasswordHasher
from certificates import Pair
from lacks import lacks

from drivers.contract import GatePosition, PointState
from gateway.central.client.client import CentralClient
from gateway.central.pull.field_map import CardFieldMap, map_card
from gateway.central.push.refused import OutboxDesk
from gateway.central.push.writes import CentralWrites
from gateway.central.relay.relay import CentralRelay, RelayLimits
from gateway.demo.central import Central, CentralAccount, seed_site
from gateway.domain.accounts import CentralAdmission
from gateway.domain.central_status import CentralStatus
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.errors import CameraUnavailable, CentralRefused, CommandRefused, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import CameraCondition, GapReason, Missing, SegmentFinished
from gateway.domain.passages import CameraEvent, Moment
from gateway.domain.viewing import NotShown, ViewOpened, ViewRefusal
from gateway.domain.writes import JsonObject
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.presence import Areas
from gateway.lanes.recorder import Recorder
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, Phase, PointSnapshot
from gateway.recording import CameraSnapshot
from gateway.recording.evidence_files import ExhibitFiles
from gateway.recording.forecast import StorageForecast
from gateway.recording.incoming import ExhibitLimits
from gateway.recording.viewing import Viewing
from gateway.runtime.clock import Stamp, SystemClock
from gateway.site.api_section import TlsSection
from gateway.site.central_sections import CentralAccountsSection, CentralSection
from gateway.site.models import Site
from gateway.store import CardRecord, Entry, KnownRecord, Segment, Store
from gateway.web.app import build_app
from gateway.web.auth.admission import Route
from gateway.web.auth.api_keys import key_hash
from gateway.web.auth.central_sign_in import CentralAccounts
from gateway.web.auth.site_file_accounts import Accounts, KnownAccount, hash_accounts, hash_password
from gateway.web.http.server import serve
from gateway.web.relay import Relay
from gateway.web.status.snapshot import DemoCard
from gateway.webhooks.desk import WebhookDesk
from gateway.webhooks.post import Post

START = 1_760_000_000_000_000
SITE = Site.model_validate(
    {
        "site": {"name": "North Yard", "timezone": "America/Toronto"},
        "api": {
            "accounts": [
                {"username": "chief", "password": "chief"},
                {"username": "guard", "password": "guard", "permissions": ["can_view_devices", "can_view_events"]},
                {"username": "nobody", "password": "nobody", "permissions": []},
            ]
        },
        "links": [{"id": "plc", "url": "tcp://127.0.0.1:502"}, {"id": "desk", "url": "serial:/dev/ttyS0"}],
        "devices": [
            {"id": 101, "name": "Entry barrier", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
            {"id": 102, "name": "Entry reader", "driver": "serial-reader", "link": "desk"},
        ],
        "areas": [{"id": "garage", "name": "Garage", "limit": 2, "anti_passback": "hard"}],
        "lanes": [
            {
                "id": "entry",
                "name": "Main entry",
                "gate": 101,
                "readers": [102],
                "inside": "garage",
                "cameras": [201],
                "arming": {"device": 101, "point": "arming"},
                "closing": {"device": 101, "point": "closing"},
            }
        ],
        "cameras": [{"id": 201, "name": "Entry overview", "url": "rtsp://127.0.0.1/one"}],
    }
)

CENTRAL = CentralSection(url="http://127.0.0.1:1", username="gateway", password="gateway")


class SetClock:
    """The system's clock with a push: tests move both of its hands on. `stepped`: so many seconds wall time alone."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self.pushed = 0.0
        self.stepped = 0.0
        self.trusted = True

    def monotonic(self) -> float:
        return self._system.monotonic() + self.pushed

    def wall(self) -> Stamp:
        return Stamp(
            micros=self._system.wall().micros + int((self.pushed + self.stepped) * 1_000_000), trusted=self.trusted
        )


class FieldInMemory:
    """A board of one lane. Commands are recorded as the lanes do, and refused while the gate is away."""

    def __init__(self, *, store: Store, clock: SetClock) -> None:
        self._store = store
        self._clock = clock
        self.lane = LaneSnapshot(
            lane_id="entry",
            name="Main entry",
            direction="entry",
            phase=Phase.IDLE,
            since=START,
            gate_id=101,
            position=GatePosition.CLOSED,
            vehicle=PointState.OFF,
            under=PointState.OFF,
            note="",
            can_stop=True,
        )
        self.gate = DeviceSnapshot(
            device_id=101,
            name="Entry barrier",
            kind="modbus-gate",
            online=True,
            since=START,
            detail="",
            position=GatePosition.CLOSED,
            points=(PointSnapshot("arming", PointState.OFF), PointSnapshot("closing", PointState.OFF)),
        )
        self.reader = DeviceSnapshot(102, "Entry reader", "serial-reader", None, START, "", None, ())
        self.commands: list[Command] = []
        self.records = True

    def lanes(self) -> tuple[LaneSnapshot, ...]:
        return (self.lane,)

    def devices(self) -> tuple[DeviceSnapshot, ...]:
        return (self.gate, self.reader)

    def show(self, **lane: object) -> None:
        self.lane = replace(self.lane, **lane)  # type: ignore[arg-type]  # fields of the snapshot
        self.gate = replace(self.gate, position=self.lane.position)
        self._store.changes.bump()

    def lose(self, reason: str) -> None:
        self.gate = replace(self.gate, online=False, detail=reason)
        self._store.changes.bump()

    async def order(self, *, lane_id: str, kind: OrderKind | None, reason: str, source: str) -> None:
        if lane_id != self.lane.lane_id:
            raise NotFoundError(f"no lane {lane_id!r} at this site")
        order = Order(kind, source, reason) if kind is not None else None
        text = "" if order is None else order.sentence()
        self.show(order="" if kind is None else kind.value, order_text=text)

    async def command(self, *, device_id: int, action: GateAction, source: str) -> Command:
        if device_id != self.gate.device_id:
            raise NotFoundError(f"device {device_id} is no gate of this site")
        if not self.gate.online:
            raise CommandRefused(f"the gate is away: {self.gate.detail}")
        now = self._clock.wall()
        command = Command(secrets.token_hex(8), device_id, "entry", action, source, now.micros, now.micros + 5_000_000)
        recorded = Event(
            kind=EventKind.COMMAND_RECORDED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            description=f"{source} wants gate {device_id} to {action.value}.",
            device_id=device_id,
            lane_id="entry",
        )
        await self._store.journal.record(Entry(events=(recorded,), commands=(command,)))
        self.commands.append(replace(command, state=CommandState.SENT))
        positions = {GateAction.OPEN: GatePosition.OPEN, GateAction.STOP: GatePosition.STOPPED}
        self.show(position=positions.get(action, GatePosition.CLOSED))
        return replace(command, recorded=self.records)


CAMERA = CameraSnapshot(
    camera_id=201,
    name="Entry overview",
    condition=CameraCondition.RECORDING,
    detail="",
    since=START,
    last_segment_at=START + 2_000_000,
    bits_per_second=1_843_000,
    reconnects=1,
)


class NewestFootage:
    """What camera 201 records now: a master playlist, a list of one segment, and that segment."""

    def __init__(self, segment: Path) -> None:
        self._segment = segment

    async def master(self, camera_id: int) -> str:
        self._known(camera_id)
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nindex.m3u8\n"

    async def playlist(self, camera_id: int) -> str:
        self._known(camera_id)
        return "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:2.0,\n7.ts\n"

    async def segment(self, camera_id: int, number: int) -> Path:
        self._known(camera_id)
        if number != 7:
            raise NotFoundError(f"camera {camera_id} has no segment {number} (any more)")
        return self._segment

    def _known(self, camera_id: int) -> None:
        if camera_id != 201:
            raise NotFoundError(f"this site has no camera {camera_id}")


class NobodyWatches:
    """Live views of a site whose cameras send nothing."""

    async def expect(self, camera_id: int) -> None:
        pass

    async def open(self, camera_id: int, offer: str) -> ViewOpened:
        raise NotShown(ViewRefusal.NO_SOURCE, "the camera sends no pictures now")

    async def trickle(self, camera_id: int, view: str, *, tags: tuple[str, ...], fragment: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")

    async def look(self, camera_id: int, view: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")

    async def end(self, camera_id: int, view: str) -> None:
        raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")


@dataclass
class FootageOnDisk:
    """Recording's face over three real files."""

    files: Footage
    exhibits: ExhibitFiles
    store: Store
    forgotten: list[int] = field(default_factory=list)
    camera: CameraSnapshot = CAMERA
    viewing: Viewing = field(default_factory=NobodyWatches)

    def show(self, *, condition: str, detail: str = "") -> None:
        self.camera = replace(self.camera, condition=CameraCondition(condition), detail=detail)

    def cameras(self) -> tuple[CameraSnapshot, ...]:
        return (self.camera,)

    def storage(self) -> StorageForecast:
        return StorageForecast(
            footage_bytes=5_100_000_000, cap_bytes=20_000_000_000, free_bytes=60_000_000_000,
            bytes_per_day=1_650_000_000, full_in_days=9.03, text="5.1 GB, full in 9 days at this rate", short=False,
        )  # fmt: skip

    @property
    def live(self) -> NewestFootage:
        return NewestFootage(self.files.segment)

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        return await self.store.segments.missing(camera_events)

    async def clip(self, camera_event: CameraEvent) -> Path:
        self._available()
        return self.files.clip

    async def parts(self, camera_event: CameraEvent) -> tuple[tuple[Path, Segment], ...]:
        finished = SegmentFinished(
            camera_id=201,
            path="201/2026010100/1_2.ts",
            started_at=START,
            clock_trusted=True,
            duration=2_000_000,
            size=9,
        )
        return ((self.files.segment, Segment(7, **finished.model_dump(exclude={"kind", "gap_from"}))),)

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        return None if before > 100 else tuple(f"{number:064x}" for number in range(after + 1, before))

    async def event_thumbnail(self, camera_event: CameraEvent) -> Path:
        self._available()
        return self.files.picture

    async def forget(self, camera_event_id: int) -> None:
        self.forgotten.append(camera_event_id)
        await self.exhibits.delete_let_go()

    async def camera_thumbnail(self, camera_id: int) -> Path:
        if camera_id != self.camera.camera_id:
            raise NotFoundError(f"this site has no camera {camera_id}")
        self._available()
        return self.files.picture

    async def vod_master(self, camera_event: CameraEvent) -> str:
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nindex.m3u8\n"

    async def vod_media(self, camera_event: CameraEvent) -> str:
        return "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n7.ts\n#EXT-X-ENDLIST\n"

    async def vod_segment(self, camera_event: CameraEvent, segment_id: int) -> Path:
        if segment_id != 7:
            raise NotFoundError("this event has no such segment")
        return self.files.segment

    def _available(self) -> None:
        if self.camera.condition != "recording":
            raise CameraUnavailable(f"camera {self.camera.camera_id}: {self.camera.detail}")


CENTRAL_STATUS = CentralStatus(
    reachable=True, since=START, last_sign_in=START, pulled_at=START, pulled="40 access cards, 3 devices, 1 cameras"
)


@dataclass
class CentralInMemory:
    view: CentralStatus = CENTRAL_STATUS
    asked_by: list[str] = field(default_factory=list)

    def show(self, **changed: object) -> None:
        self.view = replace(self.view, **changed)  # type: ignore[arg-type]  # fields of the status

    def snapshot(self) -> CentralStatus:
        return self.view

    async def refresh(self, *, by: str) -> None:
        self.asked_by.append(by)
        self.show(refreshing=True)

    async def reconcile(self, *, days: int, by: str) -> None:
        self.asked_by.append(f"{by}: {days} days")
        self.show(reconciling=True)


@dataclass(frozen=True)
class Footage:
    clip: Path
    segment: Path
    picture: Path


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Footage:
    """Two seconds of a moving bar, as a real MP4, a real MPEG-TS file and a real JPEG."""
    folder = tmp_path_factory.mktemp("footage")
    made = Footage(folder / "clip.mp4", folder / "segment.ts", folder / "picture.jpg")
    for path, form in ((made.clip, "mp4"), (made.segment, "mpegts")):
        with av.open(str(path), "w", format=form) as container:
            stream = container.add_stream("libx264", rate=10)
            stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
            for number in range(20):
                container.mux(stream.encode(_bar(number, "yuv420p")))
            container.mux(stream.encode(None))
    jpeg = av.CodecContext.create("mjpeg", "w")
    jpeg.width, jpeg.height, jpeg.pix_fmt, jpeg.time_base = 320, 180, "yuvj420p", Fraction(1, 10)
    made.picture.write_bytes(b"".join(bytes(packet) for packet in jpeg.encode(_bar(8, "yuvj420p"))))
    return made


def _bar(number: int, form: str) -> av.VideoFrame:
    """A grey picture with a bright bar that moves."""
    frame = av.VideoFrame(320, 180, form)
    for plane, ground in zip(frame.planes, (60, 128, 128), strict=True):
        row = bytearray([ground]) * plane.line_size
        if plane is frame.planes[0] or plane.width == 320:
            row[number * 16 : number * 16 + 16] = b"\xdc" * 16
        plane.update(bytes(row) * plane.height)
    frame.pts, frame.time_base = number, Fraction(1, 10)
    return frame


@dataclass
class House:
    """The running gateway as a client meets it."""

    url: str
    store: Store
    board: FieldInMemory
    recording: FootageOnDisk
    central: CentralInMemory
    clock: SetClock
    client: ClientSession
    not_ready: list[str]
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

    async def call(self, path: str, body: object = None, *, method: str = "POST", user: str = "chief"):
        """Status and JSON of one call."""
        headers = await self.sign_in(user) if user else {}
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
        self, description: str, *, kind: EventKind = EventKind.VEHICLE_PASSED, date_at: int | None = None, **more
    ) -> int:
        """Record an event and return its id."""
        event = Event(
            kind=kind,
            date_at=date_at or self.clock.wall().micros,
            clock_trusted=True,
            description=description,
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
            description=description,
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


LEAST = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def hashes() -> tuple[tuple[KnownAccount, ...], str]:
    """The site's accounts and nobody's hash, at the cost that a gateway takes."""
    made = asyncio.run(hash_accounts(SITE.api.accounts, lambda name: name))
    return tuple(account for name in made.names() if (account := made.get(name))), hash_password("")


@pytest.fixture(scope="session")
def hashed() -> tuple[tuple[KnownAccount, ...], str]:
    """The same at the least cost there is: a hash says its own, and nearly every test signs in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.web.auth.site_file_accounts._HASHER", LEAST)
        return hashes()


@pytest.fixture(scope="session")
def cheap_hash() -> Callable[[str], str]:
    """Another hash of the least cost."""
    return LEAST.hash


@pytest.fixture(scope="session")
def costly() -> tuple[tuple[KnownAccount, ...], str]:
    """For tests of signing in."""
    return hashes()


@pytest.fixture
def accounts(hashed: tuple[tuple[KnownAccount, ...], str]) -> Accounts:
    known, nobody = hashed
    return Accounts(accounts=known, nobody_hash=nobody)


KEYS = {"till": frozenset({"*"}), "counter": frozenset({"can_view_devices"}), "idle": frozenset()}
"""Programs' keys: the key of `till` is `key-of-till`, and so on."""
OpenHouse = Callable[..., "asynccontextmanager[House]"]


@pytest.fixture
def open_house(tmp_path: Path, footage: Footage, accounts: Accounts) -> OpenHouse:
    """Opens the house, with more routes and demo cards where wanted."""

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
    ) -> AsyncIterator[House]:
        loop = asyncio.get_running_loop()
        clock = SetClock()
        store = Store(folder=tmp_path, site_name=SITE.site.name, sends=True)
        await store.open()
        committing = loop.create_task(store.run())
        await store.devices.declare(
            [KnownRecord(device.id, device.name, device.driver, at_site=True) for device in SITE.devices], now=START
        )
        await store.cameras.declare(
            [KnownRecord(camera.id, camera.name, "", at_site=True) for camera in SITE.cameras], now=START
        )
        shelf = ExhibitFiles(
            store=store,
            media=tmp_path,
            clock=clock,
            fault=lambda: "",
            limits=ExhibitLimits(bytes_each=3_000_000, per_event=3, floor=0),
        )
        await shelf.open()
        board, central = FieldInMemory(store=store, clock=clock), CentralInMemory()
        recording = FootageOnDisk(footage, shelf, store)
        record = {
            "id": 4001,
            "number": "00111572",
            "username": "ada",
            "holder_name": "Ada",
            "plate": "DM 001",
            "pin": "4711",
        }
        await store.cards.apply(
            put=[CardRecord(map_card(4001, record, CardFieldMap(), UTC).card, json.dumps(record))], now=START
        )
        if viewing is not None:
            recording.viewing = viewing
        recorder = Recorder(journal=store.journal, clock=clock)
        areas = Areas(site=SITE, store=store, recorder=recorder, clock=clock)
        recording_lanes = loop.create_task(recorder.run())
        not_ready: list[str] = []
        post = Post(allowed=(ip_network("127.0.0.0/8"),), timeout_seconds=2)
        known = {key.name for key in await store.api_keys.all()}
        for name, permissions in KEYS.items():
            if name in known:
                continue
            await store.api_keys.add(
                name, key_hash=key_hash(f"key-of-{name}"), permissions=permissions, now=START, expires_at=None
            )
        app = build_app(
            site=site if people is None else site.model_copy(update={"central": CENTRAL}),
            store=store,
            lanes=board,
            areas=areas,
            recording=recording,
            central=central,
            writes=CentralWrites(client=client, store=store, clock=clock, zone=ZoneInfo(SITE.site.timezone)),
            clock=clock,
            accounts=accounts,
            data=tmp_path,
            readiness=lambda: tuple(not_ready),
            outbox=OutboxDesk(store=store, clock=clock),
            webhooks=WebhookDesk(webhooks=store.webhooks, post=post, clock=clock),
            relay=relay,
            central_accounts=people or central_accounts,
            extra_routes=routes,
            demo_cards=cards,
        )
        port: asyncio.Future[int] = loop.create_future()
        serving = loop.create_task(
            serve(
                app,
                host="127.0.0.1",
                port=0,
                started=port.set_result,
                tls=None if tls is None else TlsSection(**tls.tls),
            )
        )
        try:
            async with ClientSession() as client:
                house = House(
                    url=f"{'http' if tls is None else 'https'}://127.0.0.1:{await port}",
                    store=store,
                    board=board,
                    recording=recording,
                    central=central,
                    clock=clock,
                    client=client,
                    not_ready=not_ready,
                    stop=serving.cancel,
                )
                house.camera_event_id = await house.passed()
                yield house
        finally:
            post.close()
            for task in (serving, recording_lanes, committing):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await store.close()

    return opened


@pytest.fixture
async def house(open_house: OpenHouse) -> AsyncIterator[House]:
    async with open_house() as opened:
        yield opened


class Letter:
    """Central's accounts, asked over its own interface: each has its name for a password."""

    def __init__(self, central: Central) -> None:
        self._central = central

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        session = self._central._sessions.sign_in(username, password)
        if session is None:
            raise CentralRefused("no")
        return CentralAdmission(
            token=session.token, mfa_enabled=not session.complete, role_name="of central",
            permissions=session.account.permissions, user={}, role={}, servers=[],
        )  # fmt: skip

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        raise AssertionError("nobody signs in by a provider here")

    async def prove(self, token: str, code: str) -> None:
        raise CentralRefused("no")

    async def sign_out(self, token: str) -> None:
        self._central._sessions.end(token)


CENTRAL_ACCOUNTS = (
    CentralAccount("gateway", "gateway"),
    CentralAccount("boss", "boss"),
    CentralAccount("clerk", "clerk", frozenset({"can_view_companies"})),
    CentralAccount("careful", "careful", mfa_secret="JBSWY3DPEHPK3PXP"),
)


@pytest.fixture
def central_accounts() -> tuple[CentralAccount, ...]:
    """Each has its name for a password."""
    return CENTRAL_ACCOUNTS


@pytest.fixture
async def far_central(central_accounts: tuple[CentralAccount, ...]) -> AsyncIterator[Central]:
    """A central that runs."""
    service = Central(clock=SystemClock(), accounts=central_accounts)
    seed_site(service.tables, now=SystemClock().wall(), devices={101: "Gate"}, cameras={201: "Camera"}, cards=3)
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
def relayed(open_house: OpenHouse, far_central: Central) -> OpenHouse:
    """Opens a house whose way to central is real; its accounts are that central's, wherever the way leads."""

    @asynccontextmanager
    async def opened(url: str = "", limits: RelayLimits | None = None) -> AsyncIterator[House]:
        url = url or far_central.url
        client = CentralClient(url=url, username="gateway", password="gateway", clock=SystemClock())
        relay = CentralRelay(client=client, url=url, limits=limits)
        running = asyncio.get_running_loop().create_task(relay.run())
        site = SITE.model_copy(
            update={
                "central": CentralSection(
                    url=far_central.url,
                    username="gateway",
                    password="gateway",
                    accounts=CentralAccountsSection(remember_days=0),
                )
            }
        )
        try:
            async with open_house(relay=relay, central_accounts=Letter(far_central), site=site) as house:
                yield house
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()

    return opened


FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Path:
    path = Path("/usr/bin/chromium")
    if not path.is_file():
        lacks("Chromium is missing: install Debian's chromium")
    return path


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser(chromium):
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield started
        await started.close()


@pytest.fixture
def browser_page(browser):
    """Opens a page with no past and fails on whatever the console calls an error."""

    @asynccontextmanager
    async def opened(size=None, scheme="light", tolerate=()):
        faults = []
        size = size or {"width": 1280, "height": 900}
        context = await browser.new_context(viewport=size, color_scheme=scheme)
        context.set_default_timeout(8000)
        page = await context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        yield page
        await context.close()
        assert [fault for fault in faults if not any(word in fault for word in tolerate)] == []

    return opened
