"""Faults made at a running site of real far ends: told everywhere alike within seconds, and over when mended."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fault_rounds import Fault, Looking, all_tried, faulty
from fault_site import PATIENT_SECONDS, FarLine, FaultSite
from waiting import until

from gateway.domain.problems import ProblemKind as K
from gateway.problems.problem import SitePart
from simulation.far_ends.central.faults import ErrorKind, Faults
from simulation.far_ends.line_devices import Misbehaviour

pytestmark = [
    pytest.mark.long("dozens of faults at a running site, in real time-outs"),
    pytest.mark.alone,
    pytest.mark.timeout(400),
]

_LANE_SETTINGS = {
    "open": {"held_open_seconds": 15},
    "pushed": {"forced_seconds": 0.5},
    "held": {"vehicle_stuck_seconds": 5},
    "stuck": {"stuck_seconds": 10},
    "switch": {"key_switch": '{ device = 181, point = "input_5" }'},
    "fire": {"fire": '{ device = 191, point = "fire" }'},
    "readers": {"readers": "[800]"},
}


def of_lanes(site: FaultSite) -> dict[str, list[Fault]]:
    """Faults of gates and their inputs, by lane."""
    lanes = site.lanes

    def now() -> float:
        return time.monotonic()

    async def command(path: str, **body: object) -> None:
        """Ask until it is done: where the machine kept the far end from answering in time, the gate is away."""

        async def done() -> bool:
            async with site.http.post(path, json=body) as answer:
                said = await answer.text()
            assert answer.status == 200 or "does not answer" in said, said
            return answer.status == 200

        await until(done)

    def open_(name: str) -> Awaitable[None]:
        return command("/v1/device/open", id=lanes[name].gate)

    def lane(name: str, kind: K, make, mend, *, after: float = 0.0, stops: tuple[str, ...] = ()) -> Fault:
        return Fault(kind=kind, part=SitePart.LANE, id=name, make=make, mend=mend, after=after, stops=stops)

    def device(number: int, kind: K, make, mend, *, stops: tuple[str, ...] = ()) -> Fault:
        return Fault(kind=kind, part=SitePart.DEVICE, id=str(number), make=make, mend=mend, stops=stops)

    async def begin(name: str, under: Callable[[bool], None]) -> None:
        await open_(name)
        await asyncio.sleep(1)  # the arm is on its way
        under(True)

    async def block(*, on: bool) -> None:
        lanes["blocked"].barrier.set_locked(locked=on, now=now())
        await open_("blocked")

    async def stop() -> None:
        await open_("stopped")
        await command("/status/lane/stop", lane_id="stopped")

    async def chatter() -> None:
        noisy["task"] = asyncio.get_running_loop().create_task(_toggling(lanes["noisy"].barrier))

    async def quiet() -> None:
        noisy["task"].cancel()
        lanes["noisy"].barrier.set_arming_loop(occupied=False, now=now())

    noisy: dict[str, asyncio.Task[None]] = {}
    plain, modules, held = lanes["plain"], lanes["modules"], lanes["held"]
    return {
        "plain": [
            device(
                plain.gate,
                K.GATE_OFFLINE,
                lambda: plain.controller.misbehave(1, Misbehaviour(deaf=True)),
                lambda: plain.controller.misbehave(1),
                stops=("plain",),
            ),
            device(
                plain.gate,
                K.DEVICE_UNUSABLE,
                lambda: plain.controller.misbehave(1, Misbehaviour(exception=2)),
                lambda: plain.controller.misbehave(1),
                stops=("plain",),
            ),
        ],
        "still": [
            lane(
                "still",
                K.GATE_POSITION_UNKNOWN,
                lambda: None,  # it stands half-way from the start on
                lambda: open_("still"),  # as the steps say; the gateway closes it then
                stops=("still",),
            ),
        ],
        "limits": [
            lane(
                "limits",
                K.GATE_LIMITS_BOTH_ON,
                lambda: lanes["limits"].wiring.turn("open_limit", on=True),
                lambda: lanes["limits"].wiring.turn("open_limit", on=False),
                after=2.0,
                stops=("limits",),
            ),
        ],
        "pushed": [
            lane(
                "pushed",
                K.GATE_FORCED_OPEN,
                lambda: lanes["pushed"].barrier.force(opening=1.0, now=now()),
                lambda: lanes["pushed"].barrier.force(opening=0.0, now=now()),
                after=0.5,
            ),
        ],
        "stopped": [
            lane("stopped", K.GATE_STOPPED, stop, lambda: open_("stopped")),
        ],
        "open": [
            lane(
                "open",
                K.GATE_HELD_OPEN,
                lambda: begin("open", lambda on: lanes["open"].barrier.set_photocell(interrupted=on, now=now())),
                lambda: lanes["open"].barrier.set_photocell(interrupted=False, now=now()),
                after=15.0,
            ),
        ],
        "stuck": [
            lane(
                "stuck",
                K.INPUT_STUCK,
                lambda: lanes["stuck"].barrier.set_photocell(interrupted=True, now=now()),
                lambda: lanes["stuck"].barrier.set_photocell(interrupted=False, now=now()),
                after=10.0,
            ),
        ],
        "held": [
            lane(
                "held",
                K.VEHICLE_STUCK,
                lambda: begin("held", lambda on: held.barrier.set_closing_loop(occupied=on, now=now())),
                lambda: held.barrier.set_closing_loop(occupied=False, now=now()),
                after=5.0,
            ),
        ],
        "blocked": [
            lane(
                "blocked",
                K.GATE_DOES_NOT_MOVE,
                lambda: block(on=True),
                lambda: block(on=False),
                after=2.0,
                stops=("blocked",),
            ),
        ],
        "noisy": [lane("noisy", K.INPUT_CHATTERS, chatter, quiet, after=3.0)],
        "switch": [
            lane(
                "switch",
                K.KEY_SWITCH_ON,
                lambda: lanes["switch"].module.turn("input_5", on=True),
                lambda: lanes["switch"].module.turn("input_5", on=False),
            ),
        ],
        "fire": [
            lane(
                "fire",
                K.FIRE_INPUT_ACTIVE,
                lambda: lanes["fire"].module.turn("fire", on=True),
                lambda: lanes["fire"].module.turn("fire", on=False),
            ),
        ],
        "readers": [
            device(800, K.DEVICE_OFFLINE, site.desk.unplug, site.desk.plug_in, stops=("readers",)),
            device(
                800,
                K.MESSAGES_REFUSED,
                lambda: site.desk.write(2 * b"\xff\xfe\r\n"),
                lambda: site.desk.write(b"0007\r\n"),
            ),
        ],
        "modules": [
            device(
                modules.inputs,
                K.DEVICE_OFFLINE,
                lambda: modules.modules.misbehave(1, Misbehaviour(deaf=True)),
                lambda: modules.modules.misbehave(1),
                stops=("modules",),
            ),
            device(
                modules.inputs,
                K.DEVICE_UNUSABLE,
                lambda: modules.modules.misbehave(1, Misbehaviour(exception=2)),
                lambda: modules.modules.misbehave(1),
                stops=("modules",),
            ),
            device(
                modules.inputs,
                K.DEVICE_OFFLINE,
                lambda: modules.modules.misbehave(1, Misbehaviour(hangs_up=True)),
                lambda: modules.modules.misbehave(1),
                stops=("modules",),
            ),
        ],
    }


async def _toggling(barrier) -> None:
    on = False
    while True:
        on = not on
        barrier.set_arming_loop(occupied=on, now=time.monotonic())
        await asyncio.sleep(0.15)  # the pace of the loop that flickers


def of_lines(site: FaultSite) -> dict[str, list[Fault]]:
    """Faults of serial lines, by line."""
    lines = site.lines

    def line(name: str, kind: K, make, mend) -> Fault:
        return Fault(kind=kind, part=SitePart.LINE, id=name, make=make, mend=mend)

    def second(name: str, kind: K, how: Misbehaviour) -> Fault:
        far_end, number = lines[name].far_end, str(lines[name].devices[1])
        return Fault(
            kind=kind,
            part=SitePart.DEVICE,
            id=number,
            make=lambda: far_end.misbehave(2, how),
            mend=lambda: far_end.misbehave(2),
        )

    def both(name: str, kind: K, how: Misbehaviour) -> Fault:
        return line(name, kind, lambda: lines[name].both(how), lambda: lines[name].both(Misbehaviour()))

    def echo(*, on: bool) -> None:
        lines["echo"].both(Misbehaviour(deaf=on))
        lines["echo"].terminal.echoes = on

    tasks: dict[str, asyncio.Task[None]] = {}

    def keep(name: str, doing) -> Callable[[], Awaitable[None]]:
        async def start() -> None:
            tasks[name] = asyncio.get_running_loop().create_task(doing)

        return start

    async def stop(name: str) -> None:
        tasks[name].cancel()
        await asyncio.wait([tasks[name]])
        lines["loose"].far_end.misbehave(2)

    return {
        "down": [line("down", K.LINE_DOWN, lines["down"].terminal.unplug, lines["down"].terminal.plug_in)],
        "silent": [both("silent", K.LINE_SILENT, Misbehaviour(deaf=True))],
        "garbled": [both("garbled", K.LINE_GARBLED, Misbehaviour(corrupt=True))],
        "echo": [line("echo", K.LINE_ECHOES, lambda: echo(on=True), lambda: echo(on=False))],
        "strays": [
            line("strays", K.LINE_DISTURBED, keep("strays", _straying(lines["strays"])), lambda: stop("strays"))
        ],
        "twins": [second("twins", K.UNIT_GARBLED, Misbehaviour(corrupt=True))],
        "loose": [
            Fault(
                kind=K.UNIT_UNRELIABLE,
                part=SitePart.DEVICE,
                id=str(lines["loose"].devices[1]),
                make=keep("loose", _losing(lines["loose"])),
                mend=lambda: stop("loose"),
                after=8.0,
            )
        ],
        "slow": [second("slow", K.UNIT_SLOW, Misbehaviour(late=0.5 * PATIENT_SECONDS + 0.02))],
    }


async def _straying(line: FarLine) -> None:
    while True:
        await asyncio.sleep(0.2)  # the pace of the stray device
        line.terminal.write(b"\x07\x03\x02\x00\x01\x00\x00")


async def _losing(line: FarLine) -> None:
    """Lose one answer after each four that came, as a loose wire does."""
    while True:
        line.far_end.misbehave(2, Misbehaviour(silent=True))
        await _asked(line, times=1)
        line.far_end.misbehave(2)
        await _asked(line, times=4)


async def _asked(line: FarLine, *, times: int) -> None:
    """Wait until the second unit was asked so many times more."""
    so_far = line.far_end.received[-1:]
    while times:
        await asyncio.sleep(0.01)  # looks again
        new = line.far_end.received[-1:]
        if new != so_far:
            so_far = new
            times -= new[0].unit == 2


def of_the_rest(site: FaultSite) -> dict[str, list[Fault]]:
    """Faults of cameras, central, webhooks, by what they strike."""
    streams, feeds = site.cameras.streams, site.cameras.feeds

    def camera(name: str, kind: K, make, mend, *, after: float = 0.0) -> Fault:
        number = str(900 + list(streams).index(name))
        return Fault(kind=kind, part=SitePart.CAMERA, id=number, make=make, mend=mend, after=after)

    def stalled(*, on: bool) -> None:
        streams["stalling"].stalled = on

    def refuses(*, on: bool) -> None:
        streams["refusing"].refuse_with = 401 if on else None
        streams["refusing"].drop_viewers()

    def keyless(*, on: bool) -> None:
        feeds["keyless"].is_keyless = on

    def jumping(*, on: bool) -> None:
        feeds["jumping"].jumps = on

    def lossy(*, on: bool) -> None:
        streams["lossy"].loses_keyframes = on

    def central(kind: K, faults: Faults, *, after: float = 0.0) -> Fault:
        def set_(how: Faults) -> None:
            site.central.faults = how

        return Fault(
            kind=kind, part=SitePart.CENTRAL, make=lambda: set_(faults), mend=lambda: set_(Faults()), after=after
        )

    tampered = Fault(
        kind=K.DEVICE_TAMPERED,
        part=SitePart.DEVICE,
        id="801",
        make=lambda: site.osdp.tamper(1, tampered=True),
        mend=lambda: site.osdp.tamper(1, tampered=False),
    )
    switched_off = Fault(
        kind=K.DEVICE_OFFLINE,
        part=SitePart.DEVICE,
        id="801",
        make=lambda: site.osdp.live(1, alive=False),
        mend=lambda: site.osdp.live(1, alive=True),
    )
    off_its_channel = Fault(
        kind=K.READER_NOT_SECURE,
        part=SitePart.DEVICE,
        id="801",
        make=lambda: site.give_reader_key(another=True),
        mend=lambda: site.give_reader_key(another=False),
        after=5.0,  # until the new line is open, and the handshake has failed
    )
    return {
        "osdp": [tampered, switched_off, off_its_channel],
        "away": [camera("away", K.CAMERA_UNREACHABLE, site.cameras.go, site.cameras.come)],
        "refusing": [camera("refusing", K.CAMERA_REFUSED, lambda: refuses(on=True), lambda: refuses(on=False))],
        "stalling": [
            camera("stalling", K.CAMERA_STALLED, lambda: stalled(on=True), lambda: stalled(on=False), after=5.0)
        ],
        "keyless": [
            camera("keyless", K.CAMERA_NO_ENTRY_POINTS, lambda: keyless(on=True), lambda: keyless(on=False), after=11.0)
        ],
        "jumping": [
            camera("jumping", K.CAMERA_CLOCK_JUMPS, lambda: jumping(on=True), lambda: jumping(on=False), after=3.0)
        ],
        "lossy": [
            camera("lossy", K.CAMERA_PICTURES_MISSING, lambda: lossy(on=True), lambda: lossy(on=False), after=6.0)
        ],
        "central": [
            central(K.CENTRAL_OFFLINE, Faults(down=True)),
            central(K.CENTRAL_LIST_INCOMPLETE, Faults(paths="/v1/access", error=ErrorKind.JSON)),
            central(K.CENTRAL_NOT_PERMITTED, Faults(deny="can_view_cameras")),
            central(K.CENTRAL_CLOCK_DIFFERS, Faults(clock_skew_seconds=120)),
            central(K.CENTRAL_SLOW, Faults(latency_seconds=1.4), after=10.0),
        ],
    }


def _lost_disk(site: FaultSite) -> Fault:
    """Return the loss of the disk that all cameras record on, as the first of them tells it."""
    media, away = site.data / "media", site.data / "media-away"
    return Fault(
        kind=K.CAMERA_DISK_FAILED,
        part=SitePart.CAMERA,
        id="900",
        make=lambda: media.rename(away),
        mend=lambda: away.rename(media),
    )


def _crashing_worker(site: FaultSite) -> Fault:
    """Return the crashes of a camera worker: it is killed as soon as it is there again."""
    killing: list[asyncio.Task[None]] = []

    async def kill() -> None:
        while True:
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # it has ended meanwhile
                    words = entry.read_bytes()
                    if b"camera-worker-1.sock" in words and str(site.data).encode() in words:
                        os.kill(int(entry.parent.name), signal.SIGKILL)
            await asyncio.sleep(0.2)  # looks for it again

    async def begin() -> None:
        killing.append(asyncio.get_running_loop().create_task(kill()))

    async def end() -> None:
        killing[0].cancel()

    return Fault(kind=K.WORKER_RESTARTING, part=SitePart.GATEWAY, make=begin, mend=end, after=5.0)


async def test_each_fault_is_told_alike_everywhere_within_seconds_and_over_when_mended(short_folder):
    site = FaultSite(short_folder)
    async with site.running(_LANE_SETTINGS), asyncio.TaskGroup() as group:
        looking = Looking(http=site.http, data=site.data)
        eyes = group.create_task(looking.run())
        half_way = (K.GATE_POSITION_UNKNOWN.value, SitePart.LANE.value, "still")
        try:
            # longer than losses count that a busy machine made at the start
            await looking.until(lambda places: {*places.page} <= {half_way}, within=180)
            parts = {**of_lanes(site), **of_lines(site), **of_the_rest(site)}
            table = await all_tried(parts.values(), looking)
            table += await all_tried([[_lost_disk(site)]], looking)
            table += await all_tried([[_crashing_worker(site)]], looking)
            await looking.until(lambda places: not places.page and places.status == 200, within=30)
        except TimeoutError:
            pytest.fail(f"the site is not well: {looking.places}\n{site.log.read_text()[-3000:]}")
        eyes.cancel()
    assert faulty(table) == []


@pytest.fixture
def short_folder():
    """A folder with a short path, for Unix sockets have short names."""
    with TemporaryDirectory(prefix="eg-") as folder:
        yield Path(folder)
