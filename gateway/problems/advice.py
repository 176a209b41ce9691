"""The severity of each kind of problem, its name, its consequences for drivers, and the steps to take. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from drivers.bus.line_quality import LineFault, LineQuality
from drivers.contract import Cause
from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.texts import Text, english, text

SEVERITY: Mapping[K, Severity] = MappingProxyType(
    {
        K.GATE_OFFLINE: Severity.ALARM,
        K.GATE_POSITION_UNKNOWN: Severity.ALARM,
        K.GATE_LIMITS_BOTH_ON: Severity.ALARM,
        K.GATE_DOES_NOT_MOVE: Severity.ALARM,
        K.GATE_TOO_SLOW: Severity.WARNING,
        K.GATE_SLOWER: Severity.WARNING,
        K.ARMING_LOOP_UNKNOWN: Severity.ALARM,
        K.CLOSING_LOOP_UNKNOWN: Severity.ALARM,
        K.SAFETY_INPUT_UNKNOWN: Severity.ALARM,
        K.READERS_OFFLINE: Severity.ALARM,
        K.GATE_STOPPED: Severity.WARNING,
        K.GATE_HELD_OPEN: Severity.WARNING,
        K.GATE_FORCED_OPEN: Severity.ALARM,
        K.VEHICLE_STUCK: Severity.WARNING,
        K.INPUT_STUCK: Severity.WARNING,
        K.INPUT_CHATTERS: Severity.WARNING,
        K.INPUTS_ALL_ON: Severity.ALARM,
        K.CARDS_WITHOUT_VEHICLE: Severity.WARNING,
        K.VEHICLES_WITHOUT_CARD: Severity.WARNING,
        K.READERS_SWAPPED: Severity.ALARM,
        K.READER_SILENT: Severity.WARNING,
        K.KEY_SWITCH_ON: Severity.NOTICE,
        K.FIRE_INPUT_ACTIVE: Severity.ALARM,
        K.SCHEDULE_DOUBTED: Severity.WARNING,
        K.LINE_DOWN: Severity.ALARM,
        K.LINE_SILENT: Severity.ALARM,
        K.LINE_GARBLED: Severity.ALARM,
        K.LINE_ECHOES: Severity.WARNING,
        K.LINE_DISTURBED: Severity.WARNING,
        K.UNIT_GARBLED: Severity.ALARM,
        K.UNIT_UNRELIABLE: Severity.WARNING,
        K.UNIT_SLOW: Severity.WARNING,
        K.DEVICE_NOT_SEEN: Severity.NOTICE,
        K.DEVICE_OFFLINE: Severity.ALARM,
        K.DEVICE_UNUSABLE: Severity.ALARM,
        K.READER_NOT_SECURE: Severity.ALARM,
        K.MESSAGES_REFUSED: Severity.WARNING,
        K.DEVICE_TAMPERED: Severity.ALARM,
        K.CAMERA_UNREACHABLE: Severity.ALARM,
        K.CAMERA_REFUSED: Severity.ALARM,
        K.CAMERA_UNSUPPORTED: Severity.WARNING,
        K.CAMERA_STALLED: Severity.ALARM,
        K.CAMERA_DISK_FAILED: Severity.ALARM,
        K.CAMERA_NEVER_SEEN: Severity.NOTICE,
        K.CAMERA_NO_ENTRY_POINTS: Severity.WARNING,
        K.CAMERA_CLOCK_JUMPS: Severity.WARNING,
        K.CAMERA_OFF_PACE: Severity.WARNING,
        K.CAMERA_PICTURES_MISSING: Severity.WARNING,
        K.WORKER_RESTARTING: Severity.ALARM,
        K.FOOTAGE_AT_RISK: Severity.WARNING,
        K.STORE_FAILING: Severity.ALARM,
        K.STORE_DAMAGED: Severity.ALARM,
        K.CARDS_LOST: Severity.ALARM,
        K.PORT_FULL: Severity.WARNING,
        K.INTERFACE_NOT_SERVED: Severity.ALARM,
        K.SITE_FILE_NOTICE: Severity.NOTICE,
        K.ACCOUNT_GUESSABLE: Severity.WARNING,
        K.ACCOUNT_SINGLE_FACTOR: Severity.NOTICE,
        K.CERTIFICATE_ENDS: Severity.WARNING,
        K.CERTIFICATE_UNUSABLE: Severity.WARNING,
        K.WEBHOOK_FAILING: Severity.WARNING,
        K.WEBHOOK_DISABLED: Severity.WARNING,
        K.DISK_READ_ONLY: Severity.ALARM,
        K.DISK_SLOW: Severity.WARNING,
        K.DISK_WORN: Severity.WARNING,
        K.CLOCK_NOT_SET: Severity.WARNING,
        K.CLOCK_STEPPED: Severity.WARNING,
        K.LOOP_HELD: Severity.WARNING,
        K.MEMORY_HIGH: Severity.WARNING,
        K.BACKUP_FOLDER_REFUSES: Severity.WARNING,
        K.BACKUP_NO_ROOM: Severity.WARNING,
        K.BACKUP_REFUSED: Severity.WARNING,
        K.BACKUP_UNREACHABLE: Severity.WARNING,
        K.BACKUP_FAILED: Severity.WARNING,
        K.BACKUP_OVERDUE: Severity.WARNING,
        K.CENTRAL_OFFLINE: Severity.WARNING,
        K.CENTRAL_SLOW: Severity.WARNING,
        K.CENTRAL_SIGN_IN_REFUSED: Severity.ALARM,
        K.CENTRAL_LIST_INCOMPLETE: Severity.WARNING,
        K.CENTRAL_LIST_OLD: Severity.WARNING,
        K.CENTRAL_LIST_SHRANK: Severity.WARNING,
        K.CENTRAL_RESTORED: Severity.WARNING,
        K.CENTRAL_BACKLOG_FULL: Severity.ALARM,
        K.CENTRAL_NOT_PERMITTED: Severity.WARNING,
        K.CENTRAL_CLOCK_DIFFERS: Severity.WARNING,
        K.CENTRAL_COMMANDS_UNREADABLE: Severity.WARNING,
        K.CARDS_UNREADABLE: Severity.NOTICE,
        K.RECORDS_REFUSED: Severity.WARNING,
        K.FLEET_AWAY: Severity.NOTICE,
        K.FLEET_REFUSES: Severity.WARNING,
        K.MQTT_AWAY: Severity.NOTICE,
        K.MQTT_REFUSES: Severity.WARNING,
    }
)
"""The severity of a problem of each kind that stops no lane."""
_STEPS_OF = MappingProxyType(
    {
        K.CLOSING_LOOP_UNKNOWN: K.ARMING_LOOP_UNKNOWN,
        K.SAFETY_INPUT_UNKNOWN: K.ARMING_LOOP_UNKNOWN,
        K.CAMERA_STALLED: K.CAMERA_UNREACHABLE,
    }
)
"""The kinds that have the steps of another one."""
_ON_NETWORK = frozenset({LineFault.GARBLED, LineFault.SILENT})
"""The faults of a line that have steps of their own where it goes over the network."""
_FOLLOWS = frozenset({K.GATE_OFFLINE, K.DEVICE_OFFLINE, K.DEVICE_NOT_SEEN, K.DEVICE_UNUSABLE, K.UNIT_GARBLED})
"""The problems of devices whose steps follow from a known cause."""


def title_of(kind: K) -> Text:
    """Return the name of a kind."""
    return text(f"title.{kind}")


def meaning_of(kind: K) -> Text:
    """Return the consequences for drivers."""
    return text(f"means.{kind}")


def steps_of(kind: K) -> tuple[Text, ...]:
    """Return the steps to take, in order."""
    return tuple(_numbered(_STEPS_OF.get(kind, kind)))


def steps_of_line(quality: LineQuality, fault: LineFault) -> tuple[Text, ...]:
    """Return the steps for a line with this fault; empty for those of its kind of problem."""
    if quality.cause is not None:
        return steps_by_cause(quality.cause)
    return () if quality.is_serial or fault not in _ON_NETWORK else tuple(_numbered(f"network_{fault}"))


def steps_of_device(cause: Cause | None, kind: K) -> tuple[Text, ...]:
    """Return the steps for a device's problem whose cause is known; empty for those of its kind."""
    if cause is None or kind not in _FOLLOWS:
        return ()
    by_hand = _numbered("by_hand") if kind is K.GATE_OFFLINE else ()
    return (*steps_by_cause(cause), *by_hand)


def steps_by_cause(cause: Cause) -> tuple[Text, ...]:
    """Return the steps for a cause that is known for sure."""
    return tuple(_numbered(f"cause_{cause.name.lower()}"))


def _numbered(name: str) -> Iterator[Text]:
    number = 1
    while f"steps.{name}.{number}" in english():
        yield text(f"steps.{name}.{number}")
        number += 1
