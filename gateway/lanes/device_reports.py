"""Routing of drivers' reports to lanes, and the last reported state of each device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import structlog

from drivers.contract import (
    CardPresented,
    DeviceConnected,
    DeviceLost,
    GateMoved,
    GatePosition,
    KeysPressed,
    LossExplained,
    MessageRefused,
    PlateSeen,
    PointChanged,
    PointState,
    PollMissed,
    Report,
    TamperChanged,
)
from drivers.device import CardReaderDevice
from gateway.domain.credentials import Credential, plate_alias
from gateway.domain.events import EventKind
from gateway.domain.printed import ReaderBits
from gateway.lanes.machine import messages as m
from gateway.lanes.runner import LaneRunner
from gateway.lanes.snapshots import DeviceSnapshot, PointSnapshot
from gateway.runtime.clock import Clock, WallTimes
from gateway.site import LaneSection, Role, Site
from gateway.store.cards.cards import Cards
from gateway.texts import Words, text

log = structlog.get_logger(__name__)

_LONGEST_PLATE = 32
_LONGEST_RAW = 2048
_LONGEST_SAID = 160
_AS_SENT = ReaderBits()


@dataclass(frozen=True, slots=True)
class _Route:
    """The destination of an input's reports, and its role there."""

    runner: LaneRunner
    role: Role
    index: int = 0


class Intake:
    """The receiver of every report of the site's devices.

    Args:
        site: the site.
        runners: its lanes, in the site file's order.
        clock: the clock.
        cards: the card list, in which the cards of a plate are looked up.
        changed: called when the shown state of a device changes.
        tell: records an event of a device and shows it.
        mask: hides secrets in a text.
    """

    def __init__(
        self,
        *,
        site: Site,
        runners: Sequence[LaneRunner],
        clock: Clock,
        cards: Cards,
        changed: Callable[[], None],
        tell: Callable[[EventKind, Words, int], None],
        mask: Callable[[str], str],
    ) -> None:
        self._clock = clock
        self._mask = mask
        self._wall_times = WallTimes(clock)
        self._ahead = self._wall_times.ahead()
        self._since: dict[int, float] = {}
        self._cards = cards
        self._changed = changed
        self._tell = tell
        self._devices: dict[int, DeviceSnapshot] = {}
        self.change(site, runners, anew=frozenset())

    def change(self, site: Site, runners: Sequence[LaneRunner], *, anew: Collection[int]) -> None:
        """Take over a changed site. Its new devices and those connected `anew` are unknown until they report."""
        known = {number: seen for number, seen in self._devices.items() if number not in anew}
        now = self._clock.monotonic()
        self._since = {device.id: self._since[device.id] if device.id in known else now for device in site.devices}
        self._devices = {
            device.id: replace(known[device.id], name=device.name)
            if device.id in known
            else DeviceSnapshot(
                device_id=device.id,
                name=device.name,
                kind=device.driver,
                online=None,
                since=self._wall_times.of(now),
                detail="",
                position=None,
                points=(),
            )
            for device in site.devices
        }
        self._by_gate = {runner.rules.lane.gate: runner for runner in runners}
        self._by_reader = {
            reader: runner for lane, runner in zip(site.lanes, runners, strict=True) for reader in lane.readers
        }
        self._reader_bits = {
            device.id: ReaderBits(**dict(device.bits))
            for device in site.devices
            if isinstance(device, CardReaderDevice)
        }
        self._points = _routes(zip(site.lanes, runners, strict=True))

    def device(self, device_id: int) -> DeviceSnapshot:
        """Return one device of the site."""
        self._follow_clock()
        return self._devices[device_id]

    def devices(self) -> tuple[DeviceSnapshot, ...]:
        """Return every device, in the site file's order."""
        self._follow_clock()
        return tuple(self._devices.values())

    def take(self, report: Report) -> None:
        """Take a driver's report. Called on the loop's thread; never blocks."""
        if report.device_id not in self._devices:
            return  # a late report of a device that is no longer in the site file
        match report:
            case CardPresented() | KeysPressed() | PlateSeen():
                self._accepted(report)
            case TamperChanged():
                self._tampered(report)
            case MessageRefused():
                self._refused(report)
            case PointChanged():
                self._point(report.device_id, report.point, report.state, report.at)
            case PollMissed():
                self._missed(report)
            case GateMoved():
                self._moved(report)
            case DeviceConnected():
                self._connected(report)
            case DeviceLost():
                self._lost(report)
            case LossExplained():
                self._still_lost(report)

    def _follow_clock(self) -> None:
        """If the clock was set, correct the times since when the devices are in their states."""
        ahead = self._wall_times.ahead()
        if ahead != self._ahead:
            self._ahead = ahead
            self._devices = {
                number: replace(device, since=self._wall_times.of(self._since[number]))
                for number, device in self._devices.items()
            }

    def _turned(self, device: DeviceSnapshot) -> int:
        """Note that a device was connected or lost now; return the wall time."""
        now = self._since[device.device_id] = self._clock.monotonic()
        return self._wall_times.of(now)

    def _card(self, report: CardPresented) -> None:
        runner = self._by_reader.get(report.device_id)
        turned = self._reader_bits.get(report.device_id, _AS_SENT)
        bit_length, bits = turned.undo(report.bit_length, report.bits)
        credential = Credential(bit_length=bit_length, bits=bits, text=report.text[:128])
        if runner is None:
            log.warning("card_at_no_lane", reader=report.device_id)
            return
        runner.post(m.CardRead(reader_id=report.device_id, credential=credential, at=report.at, held=report.held))

    def _plate(self, report: PlateSeen) -> None:
        runner = self._by_reader.get(report.device_id)
        if runner is None:
            log.warning("plate_at_no_lane", camera=report.device_id)
            return
        plate = report.plate[:_LONGEST_PLATE]
        cards = self._cards.at_once((plate_alias(plate),)) or ()
        runner.post(
            m.PlateRead(
                camera_id=report.device_id,
                plate=plate,
                confidence=report.confidence,
                vehicle=report.vehicle,
                direction=report.direction,
                at=report.at,
                cards=frozenset(card.card_id for card in cards),
            )
        )

    def _keys(self, report: KeysPressed) -> None:
        runner = self._by_reader.get(report.device_id)
        if runner is None:
            log.warning("keys_at_no_lane", reader=report.device_id)
            return
        runner.post(m.KeysTyped(reader_id=report.device_id, keys=report.keys, at=report.at))

    def _tampered(self, report: TamperChanged) -> None:
        device = self._devices[report.device_id]
        kind = EventKind.DEVICE_TAMPERED if report.tampered else EventKind.TAMPER_ENDED
        done = "opened" if report.tampered else "closed"
        self._devices[report.device_id] = replace(device, tampered=report.tampered)
        self._tell(kind, text(f"event.housing.{done}", device=device.name), report.device_id)

    def _accepted(self, report: CardPresented | KeysPressed | PlateSeen) -> None:
        device = self._devices[report.device_id]
        if device.refusals.in_a_row or not device.has_read:
            refusals = replace(device.refusals, in_a_row=0)
            self._devices[report.device_id] = replace(device, refusals=refusals, has_read=True)
            self._changed()
        match report:
            case CardPresented():
                self._card(report)
            case PlateSeen():
                self._plate(report)
            case KeysPressed():
                self._keys(report)

    def _refused(self, report: MessageRefused) -> None:
        device = self._devices[report.device_id]
        said = _printable(self._mask(report.raw[:_LONGEST_RAW].decode("utf-8", errors="backslashreplace")))
        refusals = device.refusals.after(report.reason, said, at=self._clock.wall().micros)
        self._devices[report.device_id] = replace(device, refusals=refusals)
        log.warning("message_refused", device=report.device_id, reason=report.reason, count=refusals.count)
        self._changed()

    def _point(self, device_id: int, name: str, state: PointState, at: float) -> None:
        for route in self._points.get((device_id, name), ()):
            route.runner.post(m.InputReported(role=route.role, state=state, at=at, index=route.index))
        device = self._devices[device_id]
        if PointSnapshot(name, state) not in device.points:
            others = tuple(point for point in device.points if point.name != name)
            points = tuple(sorted((*others, PointSnapshot(name, state)), key=lambda point: point.name))
            self._devices[device_id] = replace(device, points=points)
            self._changed()

    def _missed(self, report: PollMissed) -> None:
        for (device_id, _), routes in self._points.items():
            if device_id == report.device_id:
                for route in routes:
                    route.runner.post(m.InputMissed(route.role, report.in_a_row, route.index))

    def _moved(self, report: GateMoved) -> None:
        runner = self._by_gate.get(report.device_id)
        if runner is not None:
            runner.post(m.GateReported(position=report.position, at=report.at))
        device = self._devices[report.device_id]
        if device.position is not report.position:
            self._devices[report.device_id] = replace(device, position=report.position)
            self._changed()

    def _connected(self, report: DeviceConnected) -> None:
        device = self._devices[report.device_id]
        self._devices[report.device_id] = replace(device, online=True, since=self._turned(device), detail="")
        runner = self._by_gate.get(report.device_id)
        if runner is not None:
            runner.post(m.GateRegained())
        self._tell(EventKind.DEVICE_CONNECTED, text("event.device_answers", device=device.name), report.device_id)

    def _lost(self, report: DeviceLost) -> None:
        device = self._devices[report.device_id]
        unknown = tuple(PointSnapshot(point.name, PointState.UNKNOWN) for point in device.points)
        self._devices[report.device_id] = replace(
            device,
            online=False,
            since=self._turned(device),
            detail=report.reason,
            answers=report.answers,
            position=None if device.position is None else GatePosition.UNKNOWN,
            points=unknown,
        )
        for (device_id, _), routes in self._points.items():
            if device_id == report.device_id:
                for route in routes:
                    route.runner.post(m.InputReported(route.role, PointState.UNKNOWN, report.at, route.index))
        runner = self._by_gate.get(report.device_id)
        if runner is not None:
            runner.post(m.GateLost(reason=report.reason))
        self._tell(EventKind.DEVICE_LOST, self._devices[report.device_id].away, report.device_id)

    def _still_lost(self, report: LossExplained) -> None:
        """Show the newest reason for a loss that was reported before."""
        device = self._devices[report.device_id]
        self._devices[report.device_id] = replace(device, detail=report.reason, answers=report.answers)
        runner = self._by_gate.get(report.device_id)
        if runner is not None:
            runner.post(m.GateLossExplained(reason=report.reason))
        log.info("device_still_lost", device=report.device_id, reason=report.reason)
        self._changed()


def _printable(text: str) -> str:
    """Return the begin of a device's message on one line, with escapes for what cannot be shown."""
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text.strip())
    return shown if len(shown) <= _LONGEST_SAID else f"{shown[:_LONGEST_SAID]}…"


def _routes(lanes: Iterable[tuple[LaneSection, LaneRunner]]) -> dict[tuple[int, str], list[_Route]]:
    routes: dict[tuple[int, str], list[_Route]] = {}
    for lane, runner in lanes:
        for one in lane.ordered_inputs:
            routes.setdefault((one.ref.device, one.ref.point), []).append(_Route(runner, one.role, one.index))
    return routes
