"""Advice for each kind of problem with cameras, storage, backups, the machine and the gateway itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import OWN_FILE, Advice

_CAMERA_STEPS = (
    "Check the camera's supply and its network cable (the lamp at the switch).",
    "Open the camera's own page from a computer on the same network.",
    "Check address, user and password of the camera in the site file.",
)

_NO_BACKUP = "Lanes work; if this box fails, what came after the last good backup is lost."
_MAKE_ONE = "Then make one by hand: `sudo systemctl start edge-gateway-backup`."

GATEWAY_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.CAMERA_UNREACHABLE: Advice(
            "Camera unreachable", Severity.ALARM, "Lanes work; nothing is recorded by this camera.", _CAMERA_STEPS
        ),
        K.CAMERA_REFUSED: Advice(
            "Camera refuses",
            Severity.ALARM,
            "Lanes work; nothing is recorded by this camera.",
            (
                "Check user and password of the camera.",
                OWN_FILE,
                "Check the path of its stream, and that its codec is H.264 or H.265.",
                "Check how many programs may watch the camera at once.",
            ),
        ),
        K.CAMERA_UNSUPPORTED: Advice(
            "Camera sends no usable video",
            Severity.WARNING,
            "Lanes work; nothing is recorded of this camera.",
            ("Set the camera's stream to H.264 or H.265, on its own page.",),
        ),
        K.CAMERA_STALLED: Advice(
            "Camera sends no picture", Severity.ALARM, "Lanes work; nothing is recorded by this camera.", _CAMERA_STEPS
        ),
        K.CAMERA_DISK_FAILED: Advice(
            "Footage cannot be written",
            Severity.ALARM,
            "Lanes work; nothing is recorded by this camera.",
            ("Check that the disk of the media folder is mounted and has room.", "Replace a disk that fails."),
        ),
        K.CAMERA_NEVER_SEEN: Advice(
            "Camera not seen yet",
            Severity.NOTICE,
            "The gateway has just started and waits for this camera.",
            ("Wait half a minute.",),
        ),
        K.CAMERA_NO_ENTRY_POINTS: Advice(
            "Camera sends too few keyframes",
            Severity.WARNING,
            "Lanes work; playing and clips may begin with damaged pictures, and live pictures come late.",
            (
                "Set the keyframe interval (I-frame interval, GOP) to one or two seconds, on the camera's own page.",
                "Switch off what stretches it there: names of makers are Smart Codec, Zipstream, H.264+ or H.265+.",
            ),
        ),
        K.CAMERA_CLOCK_JUMPS: Advice(
            "Camera's clock jumps",
            Severity.WARNING,
            "Lanes work; footage goes on, by the times at which pictures arrive.",
            (
                "Set the camera to take its time from a time server, on its own page.",
                "Restart the camera, and install its newest firmware.",
                "If its times still jump, replace it: its moments are no evidence to a tenth of a second.",
            ),
        ),
        K.CAMERA_OFF_PACE: Advice(
            "Camera counts time at another pace",
            Severity.WARNING,
            "Lanes work; footage has true times, because the times of its pictures are corrected.",
            (
                "Set the frame rate on the camera's own page to what it delivers.",
                "To get the rate that is set, lower the picture size or the bit rate.",
                "Install its newest firmware.",
            ),
        ),
        K.CAMERA_PICTURES_MISSING: Advice(
            "Pictures of a camera are missing",
            Severity.WARNING,
            "Lanes work; its footage has holes of a second or more.",
            (
                "Lost on the network: check cable, plugs and switch; a camera on radio needs a better link.",
                'Set `transport = "tcp"` for the camera in the site file, if it has "udp".',
                "Left out by the camera: lower its frame rate or bit rate, and restart it.",
                "This box does not keep up: lower the bit rates, or record fewer cameras here.",
            ),
        ),
        K.WORKER_RESTARTING: Advice(
            "Camera worker stops again and again",
            Severity.ALARM,
            "Lanes work; footage of its cameras has holes, and live pictures break off.",
            (
                "Look in the log what it says before it stops: `journalctl -u edge-gateway`.",
                "Killed by SIGKILL: look whether memory runs out (`journalctl -k`), and record fewer cameras here.",
                "Take its cameras out of the site file one by one until it stays; restart or replace that camera.",
                "Send the support bundle to whoever supports the gateway.",
            ),
        ),
        K.FOOTAGE_AT_RISK: Advice(
            "Footage at risk",
            Severity.WARNING,
            "Lanes work; footage is deleted sooner than the site file wants.",
            (
                "Look what else takes the disk: `df -h`, `du -xhd2 /`; delete what is not the gateway's.",
                "Put in a larger disk, or lower the cameras' bit rate.",
                "Lower the days of footage in `[storage]`, if that is allowed here.",
            ),
        ),
        K.STORE_FAILING: Advice(
            "Nothing can be recorded",
            Severity.ALARM,
            "Lanes go on with what is in memory; events wait and are lost at a power cut.",
            (
                "If the disk of the data folder is full, delete what is not the gateway's, or lower `[storage]`.",
                "If it is not full, look in the system's log for errors of the disk, and replace it.",
                "If a file is damaged, restart the gateway while the lanes are empty: it saves every readable row.",
            ),
        ),
        K.STORE_DAMAGED: Advice(
            "Database damaged",
            Severity.ALARM,
            "Lanes work and events are recorded; some older rows cannot be read.",
            (
                "Restart the gateway while the lanes are empty: it saves every readable row.",
                "Look in the system's log for errors of the disk, and replace it.",
            ),
        ),
        K.CARDS_LOST: Advice(
            "Card list lost",
            Severity.ALARM,
            "Lanes deny the cards that are not in the list any more, until it is here again.",
            (
                "If the site has a central, wait: the list is fetched as soon as central answers.",
                "Otherwise restore the last backup, or enter the cards again.",
                "Look in the system's log for errors of the disk, and replace it.",
            ),
        ),
        K.PORT_FULL: Advice(
            "A port is full",
            Severity.WARNING,
            "Connections of strangers are closed for others; configured addresses and this machine keep places.",
            (
                "Find what has these connections: a scanner, a faulty program, or a camera that keeps them open.",
                "Keep strangers away from the port with a firewall, or a network of its own for devices.",
            ),
        ),
        K.INTERFACE_NOT_SERVED: Advice(
            "Interface not served",
            Severity.ALARM,
            "Lanes work; nobody can use the page or the interface.",
            (
                "A port in use: look which other program has it, and stop that or change `[api] port`.",
                "A certificate or key: put a good pair in the files of `[api.tls]`.",
            ),
        ),
        K.SITE_FILE_NOTICE: Advice(
            "Site file",
            Severity.NOTICE,
            "Lanes work by the site file as it was before.",
            (
                "Correct its faults: the page's settings show each at its line, and `edge-gateway check` lists them.",
                "Then `edge-gateway reload`. If a change needs it, restart the gateway while the lanes are empty.",
            ),
        ),
        K.ACCOUNT_GUESSABLE: Advice(
            "Default or trivial password",
            Severity.WARNING,
            "Lanes work; whoever tries the usual passwords signs in, and may open gates.",
            ("Give each of these accounts another password: `edge-gateway users password`.",),
        ),
        K.ACCOUNT_SINGLE_FACTOR: Advice(
            "Account without second factor",
            Severity.NOTICE,
            "Lanes work; whoever learns one of these passwords may open gates or change the site.",
            (
                "Set up an authenticator for each of these accounts: `edge-gateway users mfa`.",
                "Disable accounts that nobody uses: `edge-gateway users disable`.",
                "Give those that only look a role that only looks: `edge-gateway users role`.",
            ),
        ),
        K.CERTIFICATE_ENDS: Advice(
            "Certificate near its end",
            Severity.WARNING,
            "Lanes work; soon browsers and programs will refuse the page and the interface.",
            (
                "One made by `init`: `edge-gateway certificate --renew`.",
                "Any other: put a new one and its key in the files of `[api.tls]`. They take effect within seconds.",
            ),
        ),
        K.CERTIFICATE_UNUSABLE: Advice(
            "Certificate cannot be used",
            Severity.WARNING,
            "Lanes work; page and interface go on with the earlier certificate, but are not served after a restart.",
            ("Put a certificate and the key that belongs to it in the files of `[api.tls]`, in PEM form.",),
        ),
        K.WEBHOOK_FAILING: Advice(
            "Webhook fails",
            Severity.WARNING,
            "Lanes work; a program does not get its messages. They wait, and are sent again less and less often.",
            (
                "Ask whoever runs that program whether it works, and tell them the answer above.",
                "Check the webhook's address, and that the receiver trusts the gateway's signature.",
                "Once it works, send what waits at once: `edge-gateway webhooks enable`.",
            ),
        ),
        K.WEBHOOK_DISABLED: Advice(
            "Webhook disabled",
            Severity.WARNING,
            "Lanes work; a program does not get its messages.",
            (
                "Ask whoever runs that program whether it works.",
                "Enable the webhook again: `edge-gateway webhooks enable`.",
            ),
        ),
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
        K.BACKUP_FOLDER_REFUSES: Advice(
            "Folder of backups refuses",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Look whether the disk for backups is plugged in and mounted: `findmnt`.",
                "If it was mounted read-only, check it with `fsck`, and replace it if it fails.",
                "Name another folder than the usual one to the unit too: `sudo systemctl edit edge-gateway-backup`.",
                _MAKE_ONE,
            ),
        ),
        K.BACKUP_NO_ROOM: Advice(
            "No room for backups",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Look how full the disks are: `df -h`.",
                "Delete what else lies there, or lower `[backup] keep`.",
                "If that is not enough, put in a larger disk, or send backups elsewhere by `[backup] target`.",
                _MAKE_ONE,
            ),
        ),
        K.BACKUP_REFUSED: Advice(
            "Place of backups refuses",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Refused user, key or signature: compare user and secrets of `[backup]` with those at the place.",
                "No right, or no such folder or bucket: have whoever runs the place create it and give the right.",
                "Another host key or certificate: enter it in `[backup]` once whoever runs the place confirms it.",
                _MAKE_ONE,
            ),
        ),
        K.BACKUP_UNREACHABLE: Advice(
            "Place of backups cannot be reached",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Check the site's line to the internet, and that this box resolves names: `resolvectl status`.",
                "Check host, port and endpoint in `[backup]`.",
                "Ask whoever runs the place whether it works, and whether it lets this site in.",
                _MAKE_ONE,
            ),
        ),
        K.BACKUP_FAILED: Advice(
            "Backup failed",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Do what is said above; the log has more: `journalctl -u edge-gateway-backup`.",
                _MAKE_ONE,
                "If it fails again, send the support bundle to whoever supports the gateway.",
            ),
        ),
        K.BACKUP_OVERDUE: Advice(
            "Backup overdue",
            Severity.WARNING,
            _NO_BACKUP,
            (
                "Look whether it is planned: `systemctl list-timers edge-gateway-backup.timer`.",
                "If it is not, plan it: `sudo systemctl enable --now edge-gateway-backup.timer`.",
                "Look that the passphrase is there: `/etc/edge-gateway-backup/passphrase`.",
                "Then make one by hand: `sudo systemctl start edge-gateway-backup`.",
                "If none is wanted any more, set `[backup] overdue_hours = 0`.",
            ),
        ),
    }
)
