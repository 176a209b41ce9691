"""Every kind of problem is proven: made at a running site, or, where no test can make it, from the state alone."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import SEVERITY, meaning_of, steps_of, title_of

_TESTS = Path(__file__).parents[2]
_AT_A_SITE = ("system/test_site_faults.py", "system/test_gateway_faults.py")
_NOT_MADE_AT_A_SITE = {
    K.ARMING_LOOP_UNKNOWN: "while its device answers an input is known; it is between a start and the first answer",
    K.CLOSING_LOOP_UNKNOWN: "as the arming loop",
    K.SAFETY_INPUT_UNKNOWN: "as the arming loop",
    K.CARDS_WITHOUT_VEHICLE: "`lanes/test_contradictions.py` has cards in a lane without vehicles",
    K.VEHICLES_WITHOUT_CARD: "`lanes/test_contradictions.py` has vehicles that wait and leave",
    K.READERS_SWAPPED: "`lanes/test_contradictions.py` has two lanes whose readers are swapped",
    K.INPUTS_ALL_ON: "`lanes/test_contradictions.py` has it from a lane's inputs",
    K.READER_SILENT: "takes days; `domain/test_silent_readers.py` has weeks of readings",
    K.GATE_TOO_SLOW: "`lanes/test_hindrances.py` has a gate that moves and is late",
    K.GATE_SLOWER: "takes 36 travels; `app/test_readiness.py` has them in a store",
    K.READERS_OFFLINE: "told as the reader's own problem, which names the lane",
    K.SCHEDULE_DOUBTED: "needs a clock that loses its trust",
    K.DEVICE_NOT_SEEN: "lasts for the first two seconds of a start",
    K.CAMERA_NEVER_SEEN: "lasts for the first seconds of a start",
    K.CAMERA_UNSUPPORTED: "no camera at hand sends another codec; `drivers/rtsp` has the refusal",
    K.CAMERA_OFF_PACE: "takes half a minute; `camera_worker/test_recorder.py` and `problems/test_found.py` have it",
    K.STORE_DAMAGED: "`app/test_damaged_store.py` has a page of old events that is overwritten",
    K.CARDS_LOST: "`app/test_damaged_store.py` has a site whose cards.db is missing or empty",
    K.DISK_SLOW: "`store/test_slow_disk.py` has commits that take long; no disk at hand is that slow",
    K.DISK_WORN: "`runtime/test_machine_state.py` has the kernel's files of a worn eMMC; no disk at hand is worn",
    K.CLOCK_STEPPED: "`runtime/test_clock.py` has a machine whose clock is set; that of this machine is not the tests'",
    K.MEMORY_HIGH: "`runtime/test_machine_state.py` and `app/test_machine_watch.py` have it from the kernel's files",
    K.PORT_FULL: "`drivers/plates/test_pushed.py` and `drivers/listening/test_places.py` have crowded ports",
    K.ACCOUNT_GUESSABLE: "`web/test_sign_in.py` has such passwords; no way to set one is open",
    K.CLOCK_NOT_SET: "is of the machine that the tests run on",
    K.CENTRAL_SIGN_IN_REFUSED: "`central/test_central_client.py` has it with a password that central does not know",
    K.CENTRAL_LIST_OLD: "takes a quarter of an hour",
    K.CENTRAL_LIST_SHRANK: "`central/test_list_coverage.py` has it with a real list",
    K.CENTRAL_RESTORED: "`central/test_central_restored.py` has it with a central put back",
    K.CENTRAL_BACKLOG_FULL: "takes gigabytes",
    K.CENTRAL_COMMANDS_UNREADABLE: "`central/test_lane_commands.py` has it",
    K.CARDS_UNREADABLE: "`central/test_sync.py` has it",
    K.FLEET_AWAY: "`fleet/test_connection.py` has it with a server that is killed",
    K.FLEET_REFUSES: "`fleet/test_connection.py` has it with a key that is revoked",
    K.MQTT_AWAY: "`mqtt/test_mirror.py` has it with a broker that is killed",
    K.MQTT_REFUSES: "`mqtt/test_mirror.py` has it with a wrong password",
    K.RECORDS_REFUSED: "`central/test_outbox_sender.py` has records that central refuses",
}


def test_every_kind_is_made_at_a_site_or_says_why_not():
    made = {
        K[name]
        for file in _AT_A_SITE
        for name in re.findall(r"\bK\.([A-Z_]+)\b", (_TESTS / file).read_text(encoding="utf-8"))
    }
    assert made & set(_NOT_MADE_AT_A_SITE) == set()
    assert made | set(_NOT_MADE_AT_A_SITE) == set(K)


def test_every_kind_has_its_advice():
    assert set(SEVERITY) == set(K)
    for kind in K:
        assert str(title_of(kind))
        assert str(meaning_of(kind)).endswith(".")
        assert all(str(step).endswith((".", "`.")) for step in steps_of(kind)), kind
        assert steps_of(kind)
