"""Kinds of problems of a site."""

from __future__ import annotations

from enum import StrEnum


class ProblemKind(StrEnum):
    """What can be wrong at a site. The values are names that programs may rely on."""

    GATE_OFFLINE = "gate_offline"
    GATE_POSITION_UNKNOWN = "gate_position_unknown"
    ARMING_LOOP_UNKNOWN = "arming_loop_unknown"
    CLOSING_LOOP_UNKNOWN = "closing_loop_unknown"
    SAFETY_INPUT_UNKNOWN = "safety_input_unknown"
    READERS_OFFLINE = "readers_offline"
    GATE_STOPPED = "gate_stopped"
    GATE_HELD_OPEN = "gate_held_open"
    GATE_FORCED_OPEN = "gate_forced_open"
    VEHICLE_STUCK = "vehicle_stuck"
    INPUT_STUCK = "input_stuck"
    INPUT_CHATTERS = "input_chatters"
    LOCAL_CONTROL = "local_control"
    FIRE_INPUT_ACTIVE = "fire_input_active"
    SCHEDULE_DOUBTED = "schedule_doubted"
    DEVICE_NOT_SEEN = "device_not_seen"
    DEVICE_OFFLINE = "device_offline"
    DEVICE_UNUSABLE = "device_unusable"
    CAMERA_UNREACHABLE = "camera_unreachable"
    CAMERA_REFUSED = "camera_refused"
    CAMERA_STALLED = "camera_stalled"
    CAMERA_DISK_FAILED = "camera_disk_failed"
    CAMERA_NEVER_SEEN = "camera_never_seen"
    FOOTAGE_AT_RISK = "footage_at_risk"
    STORE_FAILING = "store_failing"
    CLOCK_NOT_SET = "clock_not_set"
    INTERFACE_NOT_SERVED = "interface_not_served"
    SITE_FILE_NOTICE = "site_file_notice"
    CENTRAL_OFFLINE = "central_offline"
    CENTRAL_LIST_INCOMPLETE = "central_list_incomplete"
    CENTRAL_NOTICE = "central_notice"
    RECORDS_REFUSED = "records_refused"
