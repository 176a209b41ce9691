"""The problems that follow from the state of the site's parts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from drivers.listening.places import Crowd
from gateway.domain.day_counts import SilentReader
from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition, StreamFault
from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import BrokerStatus, CentralStatus, ConnectionState, FleetStatus
from gateway.domain.travels import SlowGate
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, LaneTrouble
from gateway.problems.advice import steps_of_device
from gateway.problems.lines import SiteLine, cause_of, is_garbled, problem_of_line, problems_beside
from gateway.problems.machine import MachineState, problems_of_machine, size
from gateway.problems.problem import Problem, SitePart, Verdict, gateway_problem, listed
from gateway.recording import CameraSnapshot, RestartingWorker
from gateway.recording.forecast import StorageForecast
from gateway.runtime.machine_state import DATA_FOLDER, MEDIA_FOLDER
from gateway.store.accounts.accounts import StoredAccount
from gateway.texts import Text, Words, text

_OSDP = "osdp-reader"
"""The driver of OSDP readers. One that answers but is offline has no secure channel or another key, for sure."""
_MOVES = {EventKind.GATE_OPENED: "opens", EventKind.GATE_CLOSED: "closes"}
_REFUSED_IN_A_ROW = 2
"""Refused messages without an accepted one that are a problem. A single one may be noise."""
_SECOND = 1_000_000
_HOUR = 3600
_CERTIFICATE_SECONDS = 14 * 24 * _HOUR
_NEARLY_FULL = 0.05

_KINDS = {
    CameraCondition.STARTING: ProblemKind.CAMERA_NEVER_SEEN,
    CameraCondition.UNREACHABLE: ProblemKind.CAMERA_UNREACHABLE,
    CameraCondition.REFUSED: ProblemKind.CAMERA_REFUSED,
    CameraCondition.UNSUPPORTED: ProblemKind.CAMERA_UNSUPPORTED,
    CameraCondition.STALLED: ProblemKind.CAMERA_STALLED,
    CameraCondition.DISK_FAILED: ProblemKind.CAMERA_DISK_FAILED,
}
_STREAM_KINDS = {
    StreamFault.NO_ENTRY_POINTS: ProblemKind.CAMERA_NO_ENTRY_POINTS,
    StreamFault.TIMES_JUMP: ProblemKind.CAMERA_CLOCK_JUMPS,
    StreamFault.OFF_PACE: ProblemKind.CAMERA_OFF_PACE,
    StreamFault.PACKETS_LOST: ProblemKind.CAMERA_PICTURES_MISSING,
    StreamFault.LEAVES_OUT: ProblemKind.CAMERA_PICTURES_MISSING,
    StreamFault.FALLS_BEHIND: ProblemKind.CAMERA_PICTURES_MISSING,
}

_WEIGHTY = frozenset({"*", "can_control_devices", "can_edit_settings", "can_edit_access_cards"})
"""Permissions with which an account can open gates, change the site or let people in."""

_HOUR_MICROS = 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class CrowdedListener:
    """A port that had no room for somebody in the last minute: for whom it is, and the crowd."""

    name: Words
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class WeakAccounts:
    """Names of accounts that are easily taken over, sorted.

    Attributes:
        single_factor: accounts that may open gates or change the site and have no second factor.
        guessable: accounts that are known to have a common or default password.
    """

    single_factor: tuple[str, ...] = ()
    guessable: tuple[str, ...] = ()


def weak_accounts(stored: Iterable[StoredAccount], *, guessable: Mapping[str, str]) -> WeakAccounts:
    """Return the accounts that are easily taken over.

    Args:
        stored: the accounts of the register.
        guessable: the password hashes that were found to be of guessable passwords, by the account's name; one that is
            no longer the account's hash does not count.
    """
    enabled = [account for account in stored if not account.disabled]
    hashes = {account.username: account.password_hash for account in enabled}
    return WeakAccounts(
        single_factor=tuple(
            sorted(one.username for one in enabled if not one.totp_secret and one.permissions & _WEIGHTY)
        ),
        guessable=tuple(sorted(name for name, hashed in guessable.items() if hashes.get(name) == hashed)),
    )


def problems_of_accounts(weak: WeakAccounts) -> Iterator[Problem]:
    """Yield one problem for all accounts of each kind. With another account it is a new problem to acknowledge."""
    if names := weak.guessable:
        said = text("problem.account_guessable.text", names=listed(names))
        yield gateway_problem(ProblemKind.ACCOUNT_GUESSABLE, said, str(listed(names)))
    if names := weak.single_factor:
        said = text("problem.account_single_factor.text", names=listed(names))
        yield gateway_problem(ProblemKind.ACCOUNT_SINGLE_FACTOR, said, str(listed(names)))


@dataclass(frozen=True, slots=True)
class LastBackup:
    """The last backup to the place that the site file names.

    Attributes:
        good_at: when the last good one was finished (wall micros), 0 for none yet.
        failing_since: when the first one failed after that (wall micros), 0 if the last one was good.
        kind: the kind of problem of the last failure, None if the last one was good.
        why: the last failure in one sentence, "" if the last one was good.
    """

    good_at: int = 0
    failing_since: int = 0
    kind: ProblemKind | None = None
    why: str = ""


def problems_of_backups(last: LastBackup | None, *, now: int, overdue_hours: float) -> Iterator[Problem]:
    """Yield the problem that the last backup failed, or that no good one came for long.

    Args:
        last: None if no backup was tried yet; then none is expected.
        now: the time, trusted or not: a box without a time server needs backups too.
        overdue_hours: the age from which the last good backup is too old; 0 for never.
    """
    if last is None:
        return
    if last.kind is not None:
        yield gateway_problem(last.kind, text("problem.backup_failed.text", why=last.why), since=last.failing_since)
        return
    hours = (now - last.good_at) / _HOUR_MICROS
    if overdue_hours and hours > overdue_hours:
        age = text("span.hours", count=round(hours)) if hours < 48 else text("span.days", count=round(hours / 24))
        due = last.good_at + int(overdue_hours * _HOUR_MICROS)
        yield gateway_problem(ProblemKind.BACKUP_OVERDUE, text("problem.backup_overdue.text", span=age), since=due)


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteState:
    """The state of the site's parts, from which the problems follow.

    Attributes:
        lanes: the lanes.
        devices: the devices.
        cameras: the cameras.
        storage: the storage forecast, None before the first or without cameras.
        central: the state of central, None for a site without central.
        fleet: the state of the line to the fleet, None for a gateway without one.
        broker: the state of the line to the MQTT broker, None for a gateway without one.
        store_failing: why nothing can be recorded now, "" while recording works.
        cards_lost: how cards were lost, "" if none were or once central's list was complete again.
        store_damaged: the damage that was found in a database, "" without any.
        interface_fault: why the interface is not served, "" while it is.
        site_notices: sentences about parts of the site file that are not in force.
        clock_trusted: whether the wall clock is known to be right.
        now: wall micros.
        list_old_seconds: the age from which central's lists count as old.
        refused_records: the number of records that central refused and that wait for a person.
        waiting_records: the number of records that wait to be sent to central.
        disabled_webhooks: the disabled webhooks, each with its name and the reason.
        failing_webhooks: the webhooks whose deliveries fail, each with its name and the reason.
        crowded: the ports that had no room for somebody in the last minute.
        certificate_ends: when the certificate of the interface expires (wall micros), None without one.
        certificate_fault: why the files of the certificate cannot be used, "" if they can.
        slow_gates: gates that have become slower.
        silent_readers: readers that have read nothing for longer than they usually do.
        lines: the lines to devices.
        restarting_workers: camera workers that stop repeatedly.
        machine: the state of disks, memory, processor and clock.
        backup: the last backup to the place that the site file names, None if none was tried.
        backup_overdue_hours: the age from which the last good backup is too old; 0 for never.
        weak_accounts: accounts that are easily taken over; none if only this machine can reach the interface.
    """

    lanes: tuple[LaneSnapshot, ...]
    devices: tuple[DeviceSnapshot, ...]
    cameras: tuple[CameraSnapshot, ...]
    storage: StorageForecast | None
    central: CentralStatus | None
    store_failing: str
    interface_fault: str
    site_notices: tuple[str, ...]
    clock_trusted: bool
    now: int
    store_damaged: str = ""
    cards_lost: str = ""
    list_old_seconds: float = 3600.0
    refused_records: int = 0
    waiting_records: int = 0
    disabled_webhooks: tuple[tuple[str, str], ...] = ()
    failing_webhooks: tuple[tuple[str, str], ...] = ()
    crowded: tuple[CrowdedListener, ...] = ()
    certificate_ends: int | None = None
    certificate_fault: str = ""
    slow_gates: tuple[SlowGate, ...] = ()
    silent_readers: tuple[SilentReader, ...] = ()
    lines: tuple[SiteLine, ...] = ()
    restarting_workers: tuple[RestartingWorker, ...] = ()
    machine: MachineState = field(default_factory=MachineState)
    backup: LastBackup | None = None
    backup_overdue_hours: float = 0.0
    weak_accounts: WeakAccounts = field(default_factory=WeakAccounts)
    fleet: FleetStatus | None = None
    broker: BrokerStatus | None = None


def verdict(site: SiteState) -> Verdict:
    """Return all problems, the worst first: those that stop lanes, then by severity, then in the site file's order."""
    problems = {problem.key: problem for problem in _problems(site)}  # a lane may report a problem twice
    worst_first = sorted(problems.values(), key=lambda problem: (not problem.lanes, -problem.severity))
    return Verdict(problems=tuple(worst_first), lanes=len(site.lanes))


def problems_of_camera(camera: CameraSnapshot) -> Iterator[Problem]:
    """Yield the problem that the camera does not record, or the problems of its stream."""
    if (kind := _KINDS.get(camera.condition)) is not None:
        said = text("problem.camera", camera=camera.name, why=camera.detail or camera.condition.value)
        yield _problem(kind, camera, said, since=camera.since)
    for fault in camera.faults:
        yield _problem(_STREAM_KINDS[fault], camera, _of_stream(fault, camera), subject=fault.value)


def _of_stream(fault: StreamFault, camera: CameraSnapshot) -> Text:
    match fault:
        case StreamFault.NO_ENTRY_POINTS:
            return text("problem.camera_no_entry_points.text", camera=camera.name)
        case StreamFault.TIMES_JUMP:
            return text("problem.camera_clock_jumps.text", camera=camera.name)
        case StreamFault.OFF_PACE:
            return text("problem.camera_off_pace.text", camera=camera.name, pace=round(camera.pace, 2))
        case _:
            return text(f"problem.camera_pictures_missing.{fault}", camera=camera.name)


def problem_of_worker(worker: RestartingWorker, cameras: Iterable[CameraSnapshot]) -> Problem:
    """Return the problem of a camera worker that stops repeatedly."""
    named = ", ".join(camera.name for camera in cameras if camera.camera_id in worker.cameras)
    said = text("problem.worker_restarting.text", worker=worker.name, why=worker.reason, cameras=named)
    return gateway_problem(ProblemKind.WORKER_RESTARTING, said, worker.name)


def _problem(kind: ProblemKind, camera: CameraSnapshot, text: Text, *, subject: str = "", since: int = 0) -> Problem:
    return Problem(
        kind=kind,
        part=SitePart.CAMERA,
        id=str(camera.camera_id),
        name=camera.name,
        text=text,
        subject=subject,
        since=since,
    )


def _problems(site: SiteState) -> Iterator[Problem]:
    yield from _of_gateway(site)
    offline = {device.device_id for device in site.devices if device.online is False}
    hindered: defaultdict[int, list[str]] = defaultdict(list)
    for lane in site.lanes:
        for trouble in lane.troubles:
            yield _of_lane(lane, trouble, stops=False)
        for trouble in lane.unable:
            if trouble.device_id in offline:
                hindered[trouble.device_id].append(lane.name)
            else:
                yield _of_lane(lane, trouble, stops=True)
    yield from _of_field(site, hindered)
    yield from _of_slow_gates(site)
    yield from _of_silent_readers(site)
    for camera in site.cameras:
        yield from problems_of_camera(camera)
    for worker in site.restarting_workers:
        yield problem_of_worker(worker, site.cameras)
    if site.central is not None:
        yield from _of_central(site, site.central)
    if site.fleet is not None:
        yield from _of_fleet(site.fleet)
    if site.broker is not None:
        yield from _of_broker(site.broker)


def _of_slow_gates(site: SiteState) -> Iterator[Problem]:
    lanes = {lane.lane_id: lane for lane in site.lanes}
    for slow in site.slow_gates:
        if (lane := lanes.get(slow.lane_id)) is not None:
            yield Problem(
                kind=ProblemKind.GATE_SLOWER,
                part=SitePart.LANE,
                id=lane.lane_id,
                name=lane.name,
                text=text(f"problem.gate_slower.{_MOVES[slow.kind]}", lane=lane.name, why=slow.why),
                subject=_MOVES[slow.kind],
            )


def _of_silent_readers(site: SiteState) -> Iterator[Problem]:
    devices = {device.device_id: device for device in site.devices if device.online}
    for silent in site.silent_readers:
        if (device := devices.get(silent.device_id)) is not None:
            span, usual = text("span.days", count=silent.days), round(silent.a_day)
            said = text("problem.reader_silent.text", device=device.name, span=span, count=usual)
            yield _device(ProblemKind.READER_SILENT, device, said)


def _of_field(site: SiteState, hindered: Mapping[int, list[str]]) -> Iterator[Problem]:
    """Yield the problems of lines and devices. `hindered`: the names of lanes that cannot work, by device id."""
    devices = {device.device_id: device for device in site.devices}
    gates = {lane.gate_id for lane in site.lanes}
    behind: set[int] = set()
    for line in site.lines:
        if (problem := problem_of_line(line, devices, hindered)) is not None:
            behind.update(line.device_ids)
            yield problem
        yield from problems_beside(line, devices)
    on_line = {number: line.name for line in site.lines for number in line.device_ids}
    for device in site.devices:
        number = device.device_id
        lanes = tuple(dict.fromkeys(hindered.get(number, ())))
        for problem in _of_device(device, lanes, is_gate=number in gates, is_garbled=is_garbled(site.lines, number)):
            if number not in behind or problem.kind is ProblemKind.DEVICE_TAMPERED:
                steps = steps_of_device(cause_of(site.lines, number), problem.kind)
                yield replace(problem, line=on_line.get(number, ""), told_steps=steps)


def _of_store(site: SiteState) -> Iterator[Problem]:
    if site.store_failing:
        said = _with_room_left(text("problem.store_failing.text", why=site.store_failing), site)
        yield gateway_problem(ProblemKind.STORE_FAILING, said)
    elif site.store_damaged:
        said = text("problem.store_damaged.text", why=site.store_damaged)
        yield gateway_problem(ProblemKind.STORE_DAMAGED, said)
    if site.cards_lost:
        yield gateway_problem(ProblemKind.CARDS_LOST, text("problem.cards_lost.text", why=site.cards_lost))


def _of_gateway(site: SiteState) -> Iterator[Problem]:
    yield from _of_store(site)
    if site.interface_fault:
        yield gateway_problem(ProblemKind.INTERFACE_NOT_SERVED, site.interface_fault)
    for port in site.crowded:
        crowd = port.crowd
        said = (
            text("problem.port_full.by_one", port=port.name, count=crowd.places, address=crowd.address)
            if crowd.address
            else text("problem.port_full.by_many", port=port.name, count=crowd.places)
        )
        yield gateway_problem(ProblemKind.PORT_FULL, said, subject=str(port.name))
    if not site.clock_trusted:
        yield gateway_problem(ProblemKind.CLOCK_NOT_SET, text("problem.clock_not_set.text"))
    yield from problems_of_machine(site.machine)
    yield from problems_of_backups(site.backup, now=site.now, overdue_hours=site.backup_overdue_hours)
    if site.storage is not None and site.storage.short:
        media = site.machine.disks.room.get(MEDIA_FOLDER)
        now_free = site.storage.free_bytes if media is None else media.free  # the forecast is made once a minute
        cap, free, floor = map(size, (site.storage.cap_bytes, now_free, site.storage.floor_bytes))
        said = text("problem.footage_at_risk.text", why=site.storage.text, cap=cap, free=free, floor=floor)
        yield gateway_problem(ProblemKind.FOOTAGE_AT_RISK, said)
    if site.certificate_fault and not site.interface_fault:
        yield gateway_problem(ProblemKind.CERTIFICATE_UNUSABLE, site.certificate_fault)
    if site.certificate_ends is not None and site.certificate_ends < site.now + _CERTIFICATE_SECONDS * _SECOND:
        left = (site.certificate_ends - site.now) / _SECOND
        over = text("problem.certificate_ends.over")
        said = text("problem.certificate_ends.soon", span=_span(left)) if left > 0 else over
        yield gateway_problem(ProblemKind.CERTIFICATE_ENDS, said)
    yield from problems_of_accounts(site.weak_accounts)
    for name, why in site.disabled_webhooks:
        said = text("problem.webhook_disabled.text", webhook=name, why=why)
        yield gateway_problem(ProblemKind.WEBHOOK_DISABLED, said, subject=name)
    for name, why in site.failing_webhooks:
        said = text("problem.webhook_failing.text", webhook=name, why=why)
        yield gateway_problem(ProblemKind.WEBHOOK_FAILING, said, subject=name)
    for notice in site.site_notices:
        yield gateway_problem(ProblemKind.SITE_FILE_NOTICE, notice, subject=notice)


def _with_room_left(said: Text, site: SiteState) -> Text:
    """Add what is free on a disk of the databases that is nearly full, and what takes it; nothing for any other."""
    rooms = site.machine.disks.room
    room = rooms.get(DATA_FOLDER)
    if room is None or room.free > _NEARLY_FULL * room.total:
        return said
    free, total, databases = size(room.free), size(room.total), size(room.databases)
    said = text("problem.store_failing.room", said=said, free=free, total=total, databases=databases)
    media = rooms.get(MEDIA_FOLDER)
    if media is None or media.device != room.device or site.storage is None:
        return said
    return text("problem.store_failing.footage", said=said, footage=size(site.storage.footage_bytes))


def _span(seconds: float) -> Text:
    if seconds < 2 * _HOUR:
        return text("span.minutes", count=round(seconds / 60))
    if seconds < 48 * _HOUR:
        return text("span.hours", count=round(seconds / _HOUR))
    return text("span.days", count=round(seconds / (24 * _HOUR)))


def _of_lane(lane: LaneSnapshot, trouble: LaneTrouble, *, stops: bool) -> Problem:
    return Problem(
        kind=trouble.kind,
        part=SitePart.LANE,
        id=lane.lane_id,
        name=lane.name,
        text=trouble.text,
        subject=trouble.subject,
        lanes=(lane.name,) if stops else (),
    )


def _of_device(device: DeviceSnapshot, lanes: tuple[str, ...], *, is_gate: bool, is_garbled: bool) -> Iterator[Problem]:
    if device.tampered:
        yield _device(ProblemKind.DEVICE_TAMPERED, device, text("problem.device_tampered.text", device=device.name))
    if device.online is True:
        if device.refusals.in_a_row >= _REFUSED_IN_A_ROW:
            yield _device(ProblemKind.MESSAGES_REFUSED, device, _refused(device))
        return
    kind, said = ProblemKind.DEVICE_OFFLINE, device.away
    if device.online is None:
        kind, said = ProblemKind.DEVICE_NOT_SEEN, text("problem.device_not_seen.text", device=device.name)
    elif is_garbled:
        kind, said = ProblemKind.UNIT_GARBLED, text("problem.unit_garbled.text", device=device.name)
    elif device.answers:
        kind = ProblemKind.READER_NOT_SECURE if device.kind == _OSDP else ProblemKind.DEVICE_UNUSABLE
    elif is_gate:
        kind = ProblemKind.GATE_OFFLINE
    yield replace(_device(kind, device, said), lanes=lanes, since=device.since)


def _refused(device: DeviceSnapshot) -> Text:
    name, count, why, said = device.name, device.refusals.in_a_row, device.refusals.reason, device.refusals.said
    if said:
        return text("problem.messages_refused.said", device=name, count=count, why=why, said=said)
    return text("problem.messages_refused.text", device=name, count=count, why=why)


def _device(kind: ProblemKind, device: DeviceSnapshot, text: Words) -> Problem:
    return Problem(kind=kind, part=SitePart.DEVICE, id=str(device.device_id), name=device.name, text=text)


def _of_central(site: SiteState, central: CentralStatus) -> Iterator[Problem]:
    if central.reachable is False:
        said = text("problem.central_offline.text")
        if central.error:
            said = text("problem.central_offline.reason", why=central.error)
        if waiting := site.waiting_records:
            said = text("problem.central_offline.waiting", said=said, count=waiting)
        yield _central(ProblemKind.CENTRAL_OFFLINE, said, since=central.since)
    age = 0.0 if central.pulled_at is None else (site.now - central.pulled_at) / _SECOND
    if central.reachable and age > site.list_old_seconds:
        yield _central(ProblemKind.CENTRAL_LIST_OLD, text("problem.central_list_old.text", span=_span(age)))
    for notice in central.notices:
        yield _central(notice.kind, notice.text, subject=notice.subject)
    if refused := site.refused_records:
        yield _central(ProblemKind.RECORDS_REFUSED, text("problem.records_refused.text", count=refused))


def _of_fleet(fleet: FleetStatus) -> Iterator[Problem]:
    kinds = {ConnectionState.AWAY: ProblemKind.FLEET_AWAY, ConnectionState.REFUSED: ProblemKind.FLEET_REFUSES}
    if fleet.state in kinds:
        why = fleet.reason
        said = text(f"fleet.for.{fleet.state}", why=why) if why else text(f"fleet.state.{fleet.state}")
        yield Problem(kind=kinds[fleet.state], part=SitePart.FLEET, id="", name="Fleet", text=said, since=fleet.since)


def _of_broker(broker: BrokerStatus) -> Iterator[Problem]:
    match broker.state:
        case ConnectionState.AWAY:
            said = text("problem.mqtt_away.text", why=broker.reason)
            yield gateway_problem(ProblemKind.MQTT_AWAY, said, since=broker.since)
        case ConnectionState.REFUSED:
            said = text("problem.mqtt_refuses.text", why=broker.reason)
            yield gateway_problem(ProblemKind.MQTT_REFUSES, said, since=broker.since)


def _central(kind: ProblemKind, text: Words, *, since: int = 0, subject: str = "") -> Problem:
    return Problem(kind=kind, part=SitePart.CENTRAL, id="", name="Central", text=text, since=since, subject=subject)
