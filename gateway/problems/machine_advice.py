"""Advice for each kind of problem with the machine: consequences for drivers, and steps for a technician."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

MACHINE_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.DISK_READ_ONLY: Advice(
            "Disk read-only",
            Severity.ALARM,
            "Lanes work; nothing can be recorded in the folder that is named above.",
            (
                "Look for errors of the disk: `journalctl -k`. Linux makes a disk that fails read-only.",
                "If there are any, save a backup elsewhere (`edge-gateway backup`) and replace the disk or card.",
                "If there are none, look in `/etc/fstab` whether it is mounted with `ro`, and restart the box.",
            ),
        ),
        K.DISK_SLOW: Advice(
            "Disk slow",
            Severity.WARNING,
            "Lanes work; events and commands of people are recorded late.",
            (
                "Look what else writes on this disk: a backup, an update, another program.",
                "A worn or cheap memory card does this: use an industrial card or a solid-state disk.",
                "Put the media folder on a disk of its own.",
            ),
        ),
        K.DISK_WORN: Advice(
            "Disk wears out",
            Severity.WARNING,
            "Lanes work; the disk may fail within months, and with it what is recorded here.",
            (
                "Save a backup elsewhere: `edge-gateway backup`.",
                "Order a new disk or box, and restore the backup there: `edge-gateway restore`.",
            ),
        ),
        K.CLOCK_NOT_SET: Advice(
            "Clock not set",
            Severity.WARNING,
            "Cards with days or times are decided by the last trusted time.",
            ("Check that the box reaches a time server.", "Check the battery of its real-time clock."),
        ),
        K.CLOCK_STEPPED: Advice(
            "Clock was set",
            Severity.WARNING,
            "Lanes work; the times of events before and after it do not fit together.",
            (
                "If a person set it, nothing is to be done: this is over after a quarter of an hour.",
                "If nobody did, look which time server the box asks: `timedatectl timesync-status`. Two may disagree.",
                "If it comes again after each loss of power, check the battery of its real-time clock.",
            ),
        ),
        K.LOOP_HELD: Advice(
            "Gateway reacts late",
            Severity.WARNING,
            "Gates, inputs and the page react half a second late or more.",
            (
                "Look what else runs on this box, and stop it: `top`.",
                "Record fewer cameras here, or lower their bit rates.",
                "If a task is named above, send the support bundle to whoever supports the gateway.",
            ),
        ),
        K.MEMORY_HIGH: Advice(
            "Memory runs out",
            Severity.WARNING,
            "Lanes work; if memory ends, Linux kills the gateway or a camera worker, and it starts again.",
            (
                "Look what takes it: `systemctl status edge-gateway`, and `top` for other programs.",
                "Record fewer cameras here, or use a box with more memory.",
                "If the gateway's own share grows from day to day, send the support bundle to whoever supports it.",
            ),
        ),
    }
)
