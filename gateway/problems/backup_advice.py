"""Advice for each kind of problem with backups: consequences, and steps for a technician."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

_MEANS = "Lanes work; if this box fails, what came after the last good backup is lost."
_TRY = "Then make one by hand: `sudo systemctl start edge-gateway-backup`."

BACKUP_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.BACKUP_FOLDER_REFUSES: Advice(
            "Folder of backups refuses",
            Severity.WARNING,
            _MEANS,
            (
                "Look whether the disk for backups is plugged in and mounted: `findmnt`.",
                "If it was mounted read-only, check it with `fsck`, and replace it if it fails.",
                "Name another folder than the usual one to the unit too: `sudo systemctl edit edge-gateway-backup`.",
                _TRY,
            ),
        ),
        K.BACKUP_NO_ROOM: Advice(
            "No room for backups",
            Severity.WARNING,
            _MEANS,
            (
                "Look how full the disks are: `df -h`.",
                "Delete what else lies there, or lower `[backup] keep`.",
                "If that is not enough, put in a larger disk, or send backups elsewhere by `[backup] target`.",
                _TRY,
            ),
        ),
        K.BACKUP_REFUSED: Advice(
            "Place of backups refuses",
            Severity.WARNING,
            _MEANS,
            (
                "Refused user, key or signature: compare user and secrets of `[backup]` with those at the place.",
                "No right, or no such folder or bucket: have whoever runs the place create it and give the right.",
                "Another host key or certificate: enter it in `[backup]` once whoever runs the place confirms it.",
                _TRY,
            ),
        ),
        K.BACKUP_UNREACHABLE: Advice(
            "Place of backups cannot be reached",
            Severity.WARNING,
            _MEANS,
            (
                "Check the site's line to the internet, and that this box resolves names: `resolvectl status`.",
                "Check host, port and endpoint in `[backup]`.",
                "Ask whoever runs the place whether it works, and whether it lets this site in.",
                _TRY,
            ),
        ),
        K.BACKUP_FAILED: Advice(
            "Backup failed",
            Severity.WARNING,
            _MEANS,
            (
                "Do what is said above; the log has more: `journalctl -u edge-gateway-backup`.",
                _TRY,
                "If it fails again, send the support bundle to whoever supports the gateway.",
            ),
        ),
        K.BACKUP_OVERDUE: Advice(
            "Backup overdue",
            Severity.WARNING,
            _MEANS,
            (
                "Look whether it is planned: `systemctl list-timers edge-gateway-backup.timer`.",
                "If it is not, plan it: `sudo systemctl enable --now edge-gateway-backup.timer`.",
                "Look that the passphrase is there: `/etc/edge-gateway/backup-passphrase`.",
                "Then make one by hand: `sudo systemctl start edge-gateway-backup`.",
                "If none is wanted any more, set `[backup] overdue_hours = 0`.",
            ),
        ),
    }
)
