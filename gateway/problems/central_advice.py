"""Advice for each kind of problem with central, the fleet and the MQTT broker: consequences for drivers, and steps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import OWN_FILE, Advice

CENTRAL_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.CENTRAL_OFFLINE: Advice(
            "Central offline",
            Severity.WARNING,
            "Lanes decide by themselves; new and changed cards come late, and records wait here.",
            (
                "Check the site's line to the internet.",
                "If that works, ask whoever runs the central service.",
                "Check the address in `[central]`, and that a firewall lets the gateway out.",
                "If what answers is not JSON, another page is in the way: open central's address in a browser.",
            ),
        ),
        K.CENTRAL_SLOW: Advice(
            "Central slow",
            Severity.WARNING,
            "Lanes decide by themselves; what people ask of central takes long, and new cards come late.",
            (
                "Look what else uses the site's line to the internet: updates, or cameras that are watched from afar.",
                "Test the line's speed and its losses; a radio modem may need a better place or another antenna.",
                "If the line is well, tell whoever runs the central service that it is slow.",
            ),
        ),
        K.CENTRAL_SIGN_IN_REFUSED: Advice(
            "Central refuses the gateway's account",
            Severity.ALARM,
            "Lanes go on with the cards that they know; nothing goes to central or comes from it.",
            (
                "Have whoever runs central check the account's name and password, and that it is not locked.",
                "Write the right password where it is kept, as told above: the file has nothing but the password.",
                "`edge-gateway reload` tries at once. By itself the gateway tries each minute, later every 15.",
            ),
        ),
        K.CENTRAL_LIST_INCOMPLETE: Advice(
            "A list of central is incomplete",
            Severity.WARNING,
            "Lanes go on with the list as it was; new and changed cards may be missing.",
            ("Wait for the next pull.", "If it stays so, tell whoever runs the central service what is said above."),
        ),
        K.CENTRAL_LIST_OLD: Advice(
            "Lists of central are old",
            Severity.WARNING,
            "Central answers, yet new and changed cards have not come for long.",
            (
                "Fetch everything again: `edge-gateway sync refresh`.",
                "If that does not end, tell whoever runs the central service.",
            ),
        ),
        K.CENTRAL_LIST_SHRANK: Advice(
            "A list of central has become much shorter",
            Severity.WARNING,
            "What is missing there still counts here, until the next list lacks it too.",
            (
                "Ask whoever runs the central service whether so much was deleted.",
                "If it was, nothing is to be done: the next list takes it away here too.",
            ),
        ),
        K.CENTRAL_RESTORED: Advice(
            "Central was set back",
            Severity.WARNING,
            "Lanes work; what this site sent since then is gone at central.",
            ("Send it again: `edge-gateway sync reconcile`.",),
        ),
        K.CENTRAL_BACKLOG_FULL: Advice(
            "Too much waits for central",
            Severity.ALARM,
            "Lanes work; changes made at this site are refused until central takes what waits.",
            (
                "Check why central does not take records: see the other problems of central.",
                "If the disk has room, raise `[central] backlog_gigabytes`.",
            ),
        ),
        K.CENTRAL_NOT_PERMITTED: Advice(
            "Central denies an operation",
            Severity.WARNING,
            "Lanes work; what needs this operation is not in step.",
            ("Have the gateway's account at central given the permission that is named above.",),
        ),
        K.CENTRAL_CLOCK_DIFFERS: Advice(
            "Clocks differ",
            Severity.WARNING,
            "Cards with days or times may be let in or kept out at the wrong moment; central dates events wrongly.",
            (
                "Check that the box reaches a time server.",
                "If it does, tell whoever runs the central service that its clock is wrong.",
            ),
        ),
        K.CENTRAL_COMMANDS_UNREADABLE: Advice(
            "Commands of central cannot be read",
            Severity.WARNING,
            "These commands were not carried out.",
            ("Tell whoever runs the central service: the ids of its events must be numbers.",),
        ),
        K.CARDS_UNREADABLE: Advice(
            "Cards that no reader could read",
            Severity.NOTICE,
            "These cards open nothing here.",
            (
                "Look at them at central: a number, tag or plate is missing, or a status or date is misspelt.",
                "If the numbers stand in fields of other names, name those in `[central] card_fields`.",
            ),
        ),
        K.RECORDS_REFUSED: Advice(
            "Records refused by central",
            Severity.WARNING,
            "Lanes work; these records are not at central.",
            ('Look at them under "Records refused by central" on the page.', "Edit, send again or drop each."),
        ),
        K.FLEET_AWAY: Advice(
            "Fleet away",
            Severity.NOTICE,
            "Lanes work; events wait here, and nobody can command this gateway through the fleet.",
            (
                "Check the site's line to the internet.",
                "If that works, ask whoever runs the fleet's servers.",
                "Check the addresses in `[fleet] urls`, and that a firewall lets them through.",
            ),
        ),
        K.FLEET_REFUSES: Advice(
            "Fleet refuses",
            Severity.WARNING,
            "Lanes work; events wait here, and commands or card notices of the fleet may not arrive.",
            (
                "Read the reason above: credentials, certificate, permissions or a missing stream.",
                "Check the secret that `[fleet] credentials` names, and `[fleet] ca_file`.",
                OWN_FILE,
                "Ask whoever runs the fleet's servers; `edge-gateway fleet prepare` makes what a server lacks.",
            ),
        ),
        K.MQTT_AWAY: Advice(
            "MQTT broker away",
            Severity.NOTICE,
            "Lanes work; the systems behind the broker do not see this site, and events wait here.",
            (
                "Check that the broker runs, and the network to it.",
                "Check the address in `[mqtt] url`, and that a firewall lets it through.",
            ),
        ),
        K.MQTT_REFUSES: Advice(
            "MQTT broker refuses",
            Severity.WARNING,
            "Lanes work; the systems behind the broker do not see all of this site, and events may wait here.",
            (
                "Read the reason above: user, password, certificate, rights or name.",
                "Check `username`, `password` and `ca_file` in `[mqtt]`, and `certificate` if the broker asks for one.",
                OWN_FILE,
                "Ask whoever runs the broker: the gateway's user must publish below its own topic, with MQTT 5.",
            ),
        ),
    }
)
