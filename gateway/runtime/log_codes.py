"""Codes of error lines in the log: the meaning of each, and what to do. `docs/log-codes.md` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class LogCode:
    """The code of an error line, its meaning, and what to do."""

    code: str
    means: str
    do: str


_BUNDLE = "Send a support bundle: `edge-gateway bundle`."
_DISK = "Check the disk: space, mount, and its own errors in `journalctl -k`."

FOREIGN = LogCode(
    "EG001", "A library reported an error of its own; the line has its words.", f"If it comes again: {_BUNDLE}"
)
"""The code of a line whose event has no code, which is a library's."""

LOG_CODES: Mapping[str, LogCode] = MappingProxyType(
    {
        # The gateway
        "task_failed": LogCode(
            "EG101", "A part of the gateway failed and is started again; the line names it.", _BUNDLE
        ),
        "parts_stuck": LogCode(
            "EG102",
            "Parts of the gateway do not move on. systemd restarts it unless they do within 20 seconds.",
            f"The status line of `systemctl status edge-gateway` names them. {_BUNDLE}",
        ),
        "parts_do_not_end": LogCode(
            "EG103", "Lines or lanes did not end in time for a change of the site.", f"Restart the unit. {_BUNDLE}"
        ),
        "interface_not_served": LogCode(
            "EG104",
            "The page and the interface are not served; lanes work. The line has the reason.",
            "Another program may have the port (`ss -ltnp`), or the certificate cannot be read.",
        ),
        "start_not_remembered": LogCode(
            "EG105", "A part of what the last run left could not be read at the start.", _DISK
        ),
        "request_failed": LogCode(
            "EG106",
            "A request met a fault of the gateway. The answer had the same reference as this line.",
            _BUNDLE,
        ),
        "live_stream_failed": LogCode("EG107", "The stream of changes to an open page ended by a fault.", _BUNDLE),
        "sheet_process_does_not_die": LogCode(
            "EG108", "The process that makes Excel files does not end: the disk hangs.", _DISK
        ),
        "lane_inbox_full": LogCode(
            "EG109",
            "A lane got events faster than it can take them; some were dropped.",
            f"Look for an input that chatters in the lane's view. {_BUNDLE}",
        ),
        # The site file
        "site_file_not_taken": LogCode(
            "EG201",
            "The changed site file has faults; the gateway goes on with the one before.",
            "Correct them: `edge-gateway check` lists each with its place.",
        ),
        "site_file_not_put_back": LogCode(
            "EG202",
            "A change that nobody confirmed could not be taken back in the file.",
            "Put the previous file in place by hand: `before.toml` in the data folder's `site-file`.",
        ),
        "site_change_broke_off": LogCode(
            "EG203",
            "A change of the site met a fault half-way; the gateway stops and starts with the previous file.",
            _BUNDLE,
        ),
        # The disk and the databases
        "gateway_starts_without_recording": LogCode(
            "EG301", "The disk takes nothing at the start. Lanes work, and nothing is recorded.", _DISK
        ),
        "store_failing": LogCode("EG302", "The disk refuses records; they wait in memory.", _DISK),
        "store_only_read": LogCode("EG303", "A database can be read and not be written.", _DISK),
        "store_salvaged": LogCode(
            "EG304",
            "A database was damaged. What could be read was taken over; the damaged file is kept beside it.",
            f"Replace the disk or card if it comes again. {_BUNDLE}",
        ),
        "store_behind_its_ids": LogCode(
            "EG305",
            "A database is older than what was recorded: rows are missing at its end.",
            "Was an old copy put in place? Otherwise the disk lost what it had confirmed: replace it.",
        ),
        "record_waits": LogCode("EG306", "A record waits for the disk.", _DISK),
        "records_lost": LogCode("EG307", "More records wait for the disk than fit in memory; some are lost.", _DISK),
        "records_lost_at_stop": LogCode("EG308", "The last records did not reach the disk before the stop.", _DISK),
        "record_unwritable": LogCode("EG309", "A record could not be written and was dropped.", _BUNDLE),
        "event_not_recorded": LogCode("EG310", "Too many events of cameras wait for the disk; one was dropped.", _DISK),
        "access_log_unreadable": LogCode(
            "EG311", "The copy of accounts and grants beside the database cannot be read.", _DISK
        ),
        "cards_not_readable": LogCode(
            "EG312", "Cards could not be looked up, so a card was refused as the lane's policy says.", _DISK
        ),
        "cards_not_followed": LogCode("EG313", "The cards in memory could not be brought up to date.", _BUNDLE),
        "second_factor_unreadable": LogCode(
            "EG314",
            "An account's second factor cannot be read with the key of this data folder.",
            "Give the account a new one: `edge-gateway users mfa`.",
        ),
        "second_factor_key_unreadable": LogCode(
            "EG315", "The key of second factors cannot be read.", "Restore `second-factor.key` from a backup."
        ),
        # Cameras and footage
        "camera_worker_lost": LogCode(
            "EG401", "The process of some cameras ended and is started again; the line has the reason.", _BUNDLE
        ),
        "camera_worker_does_not_die": LogCode("EG402", "A camera process does not end: the disk hangs.", _DISK),
        "camera_without_credentials": LogCode(
            "EG403", "A camera's password cannot be read, so it is not connected.", "Check the secret that it names."
        ),
        "camera_reading_failed": LogCode("EG404", "Reading from a camera met a fault and begins again.", _BUNDLE),
        "rtsp_not_served": LogCode(
            "EG405", "Cameras are not served by RTSP; the line has the reason.", "Check the port under `[rtsp]`."
        ),
        "cutter_lost": LogCode("EG406", "The process that cuts clips ended; a clip is cut when asked again.", _BUNDLE),
        "viewers_library_failed": LogCode("EG407", "Live views are not possible: their library failed.", _BUNDLE),
        "viewer_failed": LogCode("EG408", "A live view ended by a fault.", _BUNDLE),
        "segments_cut_off": LogCode(
            "EG409", "Pieces of footage ended early by a power cut; what is whole was kept.", "Nothing."
        ),
        "files_cut_off": LogCode(
            "EG410", "Files of footage ended early by a power cut; what is whole was kept.", "Nothing."
        ),
        "evidence_without_rows": LogCode(
            "EG411",
            "Files of evidence are on the disk and not in the database; they are kept under another name.",
            "Was a damaged database replaced? The files are in the folder that the line names.",
        ),
        "worker_request_failed": LogCode(
            "EG412", "A camera process met a fault in one request; its cameras go on.", _BUNDLE
        ),
        "worker_connection_failed": LogCode(
            "EG413", "A camera process met a fault in one connection; its cameras go on.", _BUNDLE
        ),
        # Lines, devices, central
        "listener_failed": LogCode(
            "EG501",
            "The port on which plate cameras report cannot be opened.",
            "Another program may have it: `ss -ltnp`.",
        ),
        "osdp_line_process_does_not_die": LogCode(
            "EG502", "The process of an OSDP line does not end: its serial port hangs.", "Unplug the adapter."
        ),
        "ca_file_not_used": LogCode(
            "EG503",
            "The authorities for central's certificate cannot be read, so there is no line to central.",
            "Check the file under `[central] ca_file`.",
        ),
        "fleet_part_failed": LogCode(
            "EG505", "A part of the connection to the fleet met a fault and begins again; the line names it.", _BUNDLE
        ),
        "mirror_failed": LogCode(
            "EG506", "The mirror at the MQTT broker met a fault and begins again; lanes work.", _BUNDLE
        ),
    }
)
"""The codes by the event of the line."""


def code_of(event: object) -> LogCode:
    """Return the code of an error line by its event; FOREIGN for an unknown event."""
    return LOG_CODES.get(event, FOREIGN) if isinstance(event, str) else FOREIGN
