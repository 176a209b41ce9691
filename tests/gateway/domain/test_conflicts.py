from __future__ import annotations

import pytest

from gateway.domain.conflicts import settle
from gateway.domain.writes import CAMERA_UPDATE, CARD_LIFECYCLE, CARD_UPDATE

BASE = {"note": "a", "status": "active", "enabled": True, "pin": "1111"}


@pytest.mark.parametrize(
    ("body", "theirs", "goes_up", "fields"),
    [
        ({"note": "b"}, {"note": "a"}, {"note": "b"}, ""),
        ({"note": "b"}, {"note": "b"}, {"note": "b"}, ""),
        ({"note": "b"}, {}, {"note": "b"}, ""),
        ({"note": "b"}, {"note": "c"}, {"note": "b"}, "note"),
        ({"note": "b"}, {"note": "a", "status": "lost"}, {"note": "b"}, ""),
        ({"status": "lost"}, {"status": "blocked"}, {"status": "lost"}, "status"),
        ({"enabled": False}, {"enabled": True}, {"enabled": False}, ""),
    ],
)
def test_the_sites_value_counts_and_what_only_one_side_changed_is_no_conflict(body, theirs, goes_up, fields):
    base = {name: value for name, value in BASE.items() if name in body}
    settled = settle(CARD_UPDATE, body, base, theirs)
    assert settled.body == goes_up
    assert ",".join(conflict.field for conflict in settled.conflicts) == fields
    assert not any(conflict.centrals_counts for conflict in settled.conflicts)


def test_a_right_that_central_took_away_is_not_given_back():
    base = {"status": "suspended", "note": "a"}
    body = {"id": 1, "status": "active", "reason": "found", "note": "b"}
    settled = settle(CARD_UPDATE, body, base, {"status": "blocked", "note": "c"})
    assert settled.body == {"id": 1, "note": "b"}
    assert {item.field: item.centrals_counts for item in settled.conflicts} == {"status": True, "note": False}
    assert "'active' here, 'blocked' at central; central's counts" in settled.conflicts[0].sentence()


def test_a_camera_has_no_rights():
    assert settle(CAMERA_UPDATE, {"enabled": True}, {"enabled": False}, {"enabled": 0}).body == {"enabled": True}


def test_no_secret_is_told():
    (conflict,) = settle(CARD_UPDATE, {"pin": "2222"}, {"pin": "1111"}, {"pin": "3333"}).conflicts
    assert "2222" not in conflict.sentence() + conflict.here
    assert "3333" not in conflict.sentence() + conflict.central


def test_what_was_sent_back_as_it_was_shown_leaves_centrals_value():
    body = {"note": "b", "holder_name": "Ada", "status": "lost"}
    base = {"note": "a", "holder_name": "Ada", "status": "lost"}
    settled = settle(CARD_UPDATE, body, base, {"note": "a", "holder_name": "Eve", "status": "active"})
    assert settled.body == {"note": "b"}
    assert not settled.conflicts


def test_a_state_that_was_said_on_purpose_is_no_such_thing():
    assert settle(CARD_LIFECYCLE, {"status": "lost"}, {"status": "lost"}, {"status": "active"}).body == {
        "status": "lost"
    }


def test_the_state_that_central_gives_a_new_card_by_itself_is_no_change_of_central():
    settled = settle(CARD_LIFECYCLE, {"id": 1, "status": "lost"}, {"status": None}, {"id": 1, "status": "active"})
    assert settled.conflicts == ()
    assert settled.body == {"id": 1, "status": "lost"}
