"""The problems that follow from the state of the site's parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from idle_lane import GATE, IDLE

from drivers.listening.places import Crowd
from gateway.domain.events import Severity
from gateway.domain.footage import CameraCondition, StreamFault
from gateway.domain.problems import ProblemKind as K
from gateway.domain.server_lines import CentralNotice, CentralStatus
from gateway.lanes.snapshots import NO_REFUSALS, DeviceSnapshot, LaneTrouble
from gateway.problems.advice import meaning_of, steps_of, title_of
from gateway.problems.found import CrowdedListener, SiteState, verdict
from gateway.problems.machine import MachineState
from gateway.recording import CameraSnapshot, RestartingWorker
from gateway.recording.forecast import StorageForecast
from gateway.runtime.loop_watch import LongHold
from gateway.runtime.machine_state import DiskFacts, Memory, Room

INPUTS, READER = 102, 103
NOW = 1_772_323_200_000_000
DAY = 86_400_000_000
ENTRY = IDLE
EXIT = replace(ENTRY, lane_id="exit", name="Exit", gate_id=104)
CAMERA = CameraSnapshot(
    camera_id=201,
    name="Overview",
    condition=CameraCondition.RECORDING,
    detail="",
    since=7,
    last_segment_at=None,
    bits_per_second=0,
    reconnects=0,
)
CENTRAL = CentralStatus(reachable=True, since=9)
DARK = LaneTrouble(K.ARMING_LOOP_UNKNOWN, "the arming loop is not known", "the arming loop", INPUTS)


def device(number, name, *, online=True, detail="", answers=False):
    return DeviceSnapshot(number, name, "modbus-gate", online, 5, detail, None, (), answers)


WELL = SiteState(
    lanes=(ENTRY, EXIT),
    devices=(device(GATE, "Barrier"), device(INPUTS, "Inputs"), device(READER, "Reader")),
    cameras=(CAMERA,),
    storage=None,
    central=CENTRAL,
    store_failing="",
    interface_fault="",
    site_notices=(),
    clock_trusted=True,
    now=NOW,
)


def kinds(site):
    return [problem.kind for problem in verdict(site).problems]


def test_site_that_works_has_no_problem():
    assert verdict(WELL).problems == ()
    assert [*map(str, verdict(WELL).not_ready)] == []
    assert str(verdict(WELL).headline) == "All 2 lanes work"
    assert str(verdict(replace(WELL, lanes=(ENTRY,))).headline) == "The lane works"
    assert str(verdict(replace(WELL, lanes=())).headline) == "No lane yet"


def test_device_whose_messages_are_all_refused_is_no_healthy_device():
    def reader(times, *, online=True):
        refusals = NO_REFUSALS
        for number in range(times):
            refusals = refusals.after(f"no number {number}", "CARD\\x00", at=NOW)
        return replace(WELL, devices=(replace(device(READER, "Reader", online=online), refusals=refusals),))

    assert kinds(reader(1)) == [], "one may be noise"
    (problem,) = verdict(reader(2)).problems
    assert (problem.kind, problem.part, problem.id) == (K.MESSAGES_REFUSED, "device", str(READER))
    assert str(problem.text) == "Reader: the last 2 messages were refused: no number 1; it said: CARD\\x00"
    assert kinds(reader(5, online=False)) == [K.DEVICE_OFFLINE]


def test_gate_that_is_away_is_one_problem_that_names_its_lane():
    away = LaneTrouble(K.GATE_OFFLINE, "the gate's controller is offline: no answer", device_id=GATE)
    site = replace(
        WELL,
        lanes=(replace(ENTRY, unable=(away,)), EXIT),
        devices=(device(GATE, "Barrier", online=False, detail="no answer"), *WELL.devices[1:]),
    )
    found = verdict(site)
    (problem,) = found.problems
    assert (problem.kind, problem.name, problem.lanes, problem.since) == (K.GATE_OFFLINE, "Barrier", ("Entry",), 5)
    assert [*map(str, found.not_ready)] == ["Entry cannot work: Barrier does not answer: no answer"]
    assert str(found.headline) == "1 of 2 lanes cannot work, 1 problem"
    assert problem.severity is Severity.ALARM


def test_module_that_serves_two_lanes_is_one_problem_of_both():
    site = replace(
        WELL,
        lanes=tuple(replace(lane, unable=(DARK,)) for lane in WELL.lanes),
        devices=(WELL.devices[0], device(INPUTS, "Inputs", online=False), WELL.devices[2]),
    )
    (problem,) = verdict(site).problems
    assert (problem.kind, problem.lanes) == (K.DEVICE_OFFLINE, ("Entry", "Exit"))
    assert str(problem.means).startswith("Entry, Exit cannot work. ")


def test_input_that_is_unknown_though_its_device_answers_is_its_lanes_problem():
    (problem,) = verdict(replace(WELL, lanes=(replace(ENTRY, unable=(DARK,)), EXIT))).problems
    assert (problem.kind, problem.part, problem.id) == (K.ARMING_LOOP_UNKNOWN, "lane", "entry")
    assert problem.lanes == ("Entry",)


def test_trouble_that_also_stops_its_lane_is_told_once_and_as_such():
    lasting = LaneTrouble(K.GATE_POSITION_UNKNOWN, "the position has been unknown for 15 s")
    unable = LaneTrouble(K.GATE_POSITION_UNKNOWN, "the position is not known")
    (problem,) = verdict(replace(WELL, lanes=(replace(ENTRY, troubles=(lasting,), unable=(unable,)),))).problems
    assert problem.lanes == ("Entry",)


def test_device_that_has_not_answered_since_the_start_keeps_the_gateway_from_being_ready():
    site = replace(WELL, devices=(device(READER, "Reader", online=None),))
    assert kinds(site) == [K.DEVICE_NOT_SEEN]
    assert [*map(str, verdict(site).not_ready)] == ["Reader has not answered yet"]


def test_device_that_answers_but_is_of_no_use():
    site = replace(WELL, devices=(device(READER, "Reader", online=False, detail="another key", answers=True),))
    (problem,) = verdict(site).problems
    assert (problem.kind, str(problem.text)) == (K.DEVICE_UNUSABLE, "Reader cannot be used: another key")
    assert [*map(str, verdict(site).not_ready)] == [], "no lane stops for it"


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (CameraCondition.STARTING, K.CAMERA_NEVER_SEEN),
        (CameraCondition.UNREACHABLE, K.CAMERA_UNREACHABLE),
        (CameraCondition.REFUSED, K.CAMERA_REFUSED),
        (CameraCondition.STALLED, K.CAMERA_STALLED),
        (CameraCondition.DISK_FAILED, K.CAMERA_DISK_FAILED),
    ],
)
def test_each_condition_of_a_camera_that_does_not_record_is_a_problem(condition, kind):
    (problem,) = verdict(replace(WELL, cameras=(replace(CAMERA, condition=condition),))).problems
    assert (problem.kind, problem.part, problem.since) == (kind, "camera", 7)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (StreamFault.NO_ENTRY_POINTS, K.CAMERA_NO_ENTRY_POINTS),
        (StreamFault.TIMES_JUMP, K.CAMERA_CLOCK_JUMPS),
        (StreamFault.OFF_PACE, K.CAMERA_OFF_PACE),
        (StreamFault.PACKETS_LOST, K.CAMERA_PICTURES_MISSING),
        (StreamFault.LEAVES_OUT, K.CAMERA_PICTURES_MISSING),
        (StreamFault.FALLS_BEHIND, K.CAMERA_PICTURES_MISSING),
    ],
)
def test_each_fault_of_a_stream_that_is_recorded_is_a_problem(fault, kind):
    (problem,) = verdict(replace(WELL, cameras=(replace(CAMERA, faults=(fault,)),))).problems
    assert (problem.kind, problem.part, problem.id, problem.severity) == (kind, "camera", "201", Severity.WARNING)


def test_the_pace_of_a_cameras_timestamps_is_told():
    camera = replace(CAMERA, faults=(StreamFault.OFF_PACE,), pace=0.84)
    (problem,) = verdict(replace(WELL, cameras=(camera,))).problems
    assert str(problem.text) == "Overview: its timestamps count 0.84 s in a second, and are corrected"


def test_a_camera_worker_that_stops_again_and_again_names_its_cameras():
    worker = RestartingWorker("camera-worker-1", "killed by SIGKILL", (201,))
    (problem,) = verdict(replace(WELL, restarting_workers=(worker,))).problems
    assert (problem.kind, problem.part, problem.subject) == (K.WORKER_RESTARTING, "gateway", "camera-worker-1")
    assert str(problem.text) == "camera-worker-1 stops again and again: killed by SIGKILL. Its cameras: Overview"


def test_the_gateway_itself_and_central():
    site = replace(
        WELL,
        store_failing="the disk is full",
        interface_fault="port 8480 is in use",
        clock_trusted=False,
        site_notices=("changed in the site file: lanes", "changed in the site file: links"),
        central=replace(
            CENTRAL,
            reachable=False,
            error="no route",
            incomplete=True,
            notices=(
                CentralNotice(K.CENTRAL_LIST_INCOMPLETE, "access cards did not come"),
                CentralNotice(K.CENTRAL_CLOCK_DIFFERS, "the clocks differ"),
            ),
        ),
        refused_records=3,
    )
    assert kinds(site) == [
        K.STORE_FAILING,
        K.INTERFACE_NOT_SERVED,
        K.CLOCK_NOT_SET,
        K.CENTRAL_OFFLINE,
        K.CENTRAL_LIST_INCOMPLETE,
        K.CENTRAL_CLOCK_DIFFERS,
        K.RECORDS_REFUSED,
        K.SITE_FILE_NOTICE,
        K.SITE_FILE_NOTICE,
    ]
    assert [*map(str, verdict(site).not_ready)] == ["nothing can be recorded: the disk is full", "port 8480 is in use"]


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        (0, "central does not answer: no connection within 4 s"),
        (1, "central does not answer: no connection within 4 s; 1 record waits for it"),
        (1200, "central does not answer: no connection within 4 s; 1,200 records wait for it"),
    ],
)
def test_a_central_that_is_away_tells_how_much_waits_for_it(waiting, text):
    central = replace(CENTRAL, reachable=False, error="no connection within 4 s")
    (problem,) = verdict(replace(WELL, central=central, waiting_records=waiting)).problems
    assert str(problem.text) == text


def test_a_notice_of_central_whose_numbers_change_stays_one_problem():
    keys = {
        problem.key
        for left in (9, 8)
        for problem in verdict(
            replace(
                WELL,
                central=replace(CENTRAL, notices=(CentralNotice(K.CENTRAL_LIST_INCOMPLETE, f"asks for {left} s"),)),
            )
        ).problems
    }
    assert len(keys) == 1


def test_a_database_that_is_damaged_in_a_part_still_records():
    told = verdict(replace(WELL, store_damaged="site.db: the file is damaged"))
    assert [problem.kind for problem in told.problems] == [K.STORE_DAMAGED]
    assert [*map(str, told.not_ready)] == []


def test_housing_that_is_open_is_a_problem_beside_that_of_being_away():
    away = replace(device(READER, "Reader", online=False), tampered=True)
    assert kinds(replace(WELL, devices=(away,))) == [K.DEVICE_TAMPERED, K.DEVICE_OFFLINE]


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (15 * DAY, None),
        (13 * DAY, "the certificate of the interface ends in 13 days"),
        (-1, "the certificate has ended"),
    ],
)
def test_certificate_near_its_end(left, text):
    problems = verdict(replace(WELL, certificate_ends=NOW + left)).problems
    assert [str(problem.text) for problem in problems] == ([] if text is None else [text])


def test_a_certificate_that_cannot_be_used_is_told_once():
    fault = "api.tls.key: key.pem does not belong to the certificate in certificate.pem"
    assert kinds(replace(WELL, certificate_fault=fault)) == [K.CERTIFICATE_UNUSABLE]
    assert kinds(replace(WELL, certificate_fault=fault, interface_fault=fault)) == [K.INTERFACE_NOT_SERVED]


def test_lists_are_old_only_while_central_answers():
    old = replace(CENTRAL, pulled_at=NOW - 3 * 3_600_000_000)
    assert kinds(replace(WELL, central=old)) == [K.CENTRAL_LIST_OLD]
    assert str(verdict(replace(WELL, central=old)).problems[0].text) == "the last pull ended 3 hours ago"
    assert kinds(replace(WELL, central=replace(old, reachable=False))) == [K.CENTRAL_OFFLINE]
    assert kinds(replace(WELL, central=replace(CENTRAL, pulled_at=NOW - 60_000_000))) == []


def test_each_webhook_that_is_disabled_is_a_problem():
    site = replace(WELL, disabled_webhooks=(("https://a/", "it answered 410"), ("https://b/", "by a person")))
    assert [str(problem.text) for problem in verdict(site).problems] == [
        "nothing is sent to https://a/: it answered 410",
        "nothing is sent to https://b/: by a person",
    ]


DISK = Room(free=12_000_000, total=29_300_000_000, databases=1_200_000_000, device=1)
FORECAST = StorageForecast(
    footage_bytes=20_100_000_000,
    cap_bytes=25_000_000_000,
    free_bytes=12_000_000,
    bytes_per_day=0,
    full_in_days=None,
    text="20.1 GB, full, and nothing may be deleted: cameras pause",
    short=True,
    floor_bytes=1_000_000_000,
)


@pytest.mark.parametrize(
    ("rooms", "numbers"),
    [
        (
            {"data folder": DISK, "media folder": DISK},
            "; 12 MB of 29.3 GB are free; databases take 1.2 GB; footage takes 20.1 GB",
        ),
        (
            {"data folder": DISK, "media folder": replace(DISK, device=2)},
            "; 12 MB of 29.3 GB are free; databases take 1.2 GB",
        ),
        ({"data folder": replace(DISK, free=9_000_000_000)}, ""),
        ({}, ""),
    ],
)
def test_a_full_disk_is_told_in_numbers(rooms, numbers):
    machine = MachineState(disks=DiskFacts(room=rooms))
    site = replace(WELL, store_failing="site.db: the disk is full", machine=machine, storage=FORECAST)
    failing, at_risk = verdict(site).problems
    assert str(failing.text) == f"nothing can be recorded: site.db: the disk is full{numbers}"
    assert str(at_risk.text) == (
        "storage: 20.1 GB, full, and nothing may be deleted: cameras pause; it may take 25 GB;"
        " 12 MB of its disk are free; 1 GB must stay free"
    )


def test_a_webhook_that_fails_is_a_problem():
    (problem,) = verdict(replace(WELL, failing_webhooks=(("https://a/", "the receiver answered 500"),))).problems
    assert (problem.kind, problem.subject) == (K.WEBHOOK_FAILING, "https://a/")
    assert str(problem.text) == "what is sent to https://a/ does not arrive: the receiver answered 500"


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [
        (
            {"disks": DiskFacts(read_only=("media folder",))},
            K.DISK_READ_ONLY,
            "the disk of the media folder is read-only",
        ),
        (
            {"disks": DiskFacts(worn={"mmcblk0": "90 % of the life that its maker promises is used up"})},
            K.DISK_WORN,
            "the disk mmcblk0 wears out: 90 % of the life that its maker promises is used up",
        ),
        ({"slow_commits": 0.5}, K.DISK_SLOW, "most records take more than 0.5 s to reach the disk"),
        (
            {"memory_high": Memory(470_000_000, 512_000_000, of_unit=True)},
            K.MEMORY_HIGH,
            "less than a fifth of the 512 MB of memory that the gateway's unit may have is left",
        ),
        (
            {"memory_high": Memory(3_900_000_000, 4_000_000_000, of_unit=False)},
            K.MEMORY_HIGH,
            "less than a fifth of the 4,000 MB of memory that this machine has is left",
        ),
        (
            {"loop_held": LongHold("lane-main", busy=True, at=1.0)},
            K.LOOP_HELD,
            "the gateway is busy for more than half a second again and again: lane-main",
        ),
        (
            {"loop_held": LongHold("lane-main", busy=False, at=1.0)},
            K.LOOP_HELD,
            "the gateway waits for this machine for more than half a second again and again",
        ),
        ({"clock_step": -90.0}, K.CLOCK_STEPPED, "the clock was set back by 90 s"),
        ({"clock_step": 7200.0}, K.CLOCK_STEPPED, "the clock was set ahead by 120 minutes"),
    ],
)
def test_each_problem_of_the_machine(state, kind, text):
    (problem,) = verdict(replace(WELL, machine=MachineState(**state))).problems
    assert (problem.kind, problem.part, str(problem.text)) == (kind, "gateway", text)


def test_gate_that_does_not_move_and_stops_its_lane_keeps_the_gateway_from_being_ready():
    unmoved = LaneTrouble(K.GATE_DOES_NOT_MOVE, "the gate did not open: locked")
    found = verdict(replace(WELL, lanes=(replace(ENTRY, unable=(unmoved,), troubles=(unmoved,)), EXIT)))
    (problem,) = found.problems
    assert (problem.kind, problem.lanes) == (K.GATE_DOES_NOT_MOVE, ("Entry",))
    assert [*map(str, found.not_ready)] == ["Entry cannot work: the gate did not open: locked"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 record was refused by central, and waits for a person"),
        (1200, "1,200 records were refused by central, and wait for a person"),
    ],
)
def test_refused_records_are_counted_in_a_sentence(count, text):
    (problem,) = verdict(replace(WELL, refused_records=count)).problems
    assert (problem.kind, str(problem.text)) == (K.RECORDS_REFUSED, text)


@pytest.mark.parametrize("kind", [K.DEVICE_OFFLINE, K.GATE_OFFLINE])
def test_who_has_only_the_page_is_told_where_it_finds_the_address_of_a_silent_device(kind):
    assert any('"Look for units" at Lines on the page' in str(step) for step in steps_of(kind))


def test_an_osdp_reader_that_answers_without_its_key_is_off_its_secure_channel():
    away = device(READER, "Reader", online=False, detail="answers, but has another key", answers=True)
    (problem,) = verdict(replace(WELL, devices=(replace(away, kind="osdp-reader"),))).problems
    assert (problem.kind, problem.severity) == (K.READER_NOT_SECURE, Severity.ALARM)
    assert str(problem.text) == "Reader cannot be used: answers, but has another key"


def test_what_stops_a_lane_comes_first():
    blind = LaneTrouble(K.CLOSING_LOOP_UNKNOWN, "the closing loop is not known", device_id=INPUTS)
    site = replace(WELL, store_failing="full", lanes=(ENTRY, replace(EXIT, unable=(blind,))))
    assert kinds(site) == [K.CLOSING_LOOP_UNKNOWN, K.STORE_FAILING]


def test_every_kind_says_what_it_means_and_what_to_do():
    for kind in K:
        assert str(title_of(kind)), kind
        assert str(meaning_of(kind)).endswith("."), kind
        assert steps_of(kind), kind
        assert all(str(step).endswith((".", ")")) for step in steps_of(kind)), kind


def test_a_full_port_is_told_with_the_address_that_fills_it():
    crowded = (CrowdedListener("plate cameras (push)", Crowd(3, "192.0.2.7", 40)),)
    (problem,) = verdict(replace(WELL, crowded=crowded)).problems
    assert problem.kind is K.PORT_FULL
    assert str(problem.text) == "the port for plate cameras (push) is full: 40 connections are of 192.0.2.7"
    crowded = (CrowdedListener("plate cameras (push)", Crowd(3, "", 90)),)
    (problem,) = verdict(replace(WELL, crowded=crowded)).problems
    assert str(problem.text) == "the port for plate cameras (push) is full: 90 connections are of many addresses"
