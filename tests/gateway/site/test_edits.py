"""Edits of a site file keep what its author wrote."""

import json
import tomllib

import pytest

from gateway.domain.errors import ConfigError
from gateway.site.edits import Edit, edited, inverse

FILE = b"""# The north gate.
[site]
name = "North"   # as on the sign

[[lanes]]
id = "in"
name = "Entry"
# the guard wants it short
held_open_seconds = 60 # seconds
waiting_seconds = 30

[[schedules]]
id = "day" # of the office
windows = [
  { days = ["mon", "tue"], start = "06:00", end = "18:00" },
]

[[holidays]]
date = 2027-01-01
name = "New Year"

[[lanes]]
id = "out"
name = "Exit"
"""


def test_a_value_changes_and_all_else_stays():
    text = edited(
        FILE, [Edit("lanes", "in", {"held_open_seconds": 90, "name": "Entry"}), Edit("site", "", {"name": "South"})]
    )
    assert text == FILE.replace(b"60 # sec", b"90 # sec").replace(b'"North"   #', b'"South"   #')


def test_nothing_changes_nothing():
    assert edited(FILE, [Edit("lanes", "in", {"name": "Entry"})]) == FILE


def test_a_key_is_added_and_taken_away():
    text = edited(
        FILE, [Edit("lanes", "out", {"hold_open_schedule": "day"}), Edit("lanes", "in", {"waiting_seconds": None})]
    )
    lanes = tomllib.loads(text.decode())["lanes"]
    assert lanes[1] == {"id": "out", "name": "Exit", "hold_open_schedule": "day"}
    assert "waiting_seconds" not in lanes[0]
    assert b"# the guard wants it short" in text


def test_holidays_and_schedules_come_and_go():
    window = {"days": ["sat"], "start": "08:00", "end": "12:00"}
    text = edited(
        FILE,
        [
            Edit("holidays", "2027-12-25", {"name": "Christmas"}),
            Edit("holidays", "2027-01-01", remove=True),
            Edit("schedules", "day", windows=(window,)),
            Edit("schedules", "night", windows=()),
        ],
    )
    read = tomllib.loads(text.decode())
    assert read["holidays"] == [{"date": "2027-12-25", "name": "Christmas"}]
    assert read["schedules"] == [{"id": "day", "windows": [window]}, {"id": "night", "windows": []}]
    assert b"# of the office" in text
    assert [lane["id"] for lane in read["lanes"]] == ["in", "out"]


def test_the_first_holiday_makes_its_section_and_the_last_one_ends_it():
    text = edited(b'[site]\nname = "A"\n', [Edit("holidays", "2027-12-25", {"name": "Christmas"})])
    assert tomllib.loads(text.decode())["holidays"] == [{"date": "2027-12-25", "name": "Christmas"}]
    assert "holidays" not in tomllib.loads(edited(text, [Edit("holidays", "2027-12-25", remove=True)]).decode())


@pytest.mark.parametrize(
    "text",
    [b'site = { name = "A" }\n', b'[site]\nname = "A"\nholidays = 1\n[["holidays"]]\ndate = 2027-12-25\n'],
    ids=["in one line", "a quoted name"],
)
def test_what_is_written_in_another_way_is_left_to_an_editor(text):
    with pytest.raises(ConfigError):
        edited(text, [Edit("site", "", {"name": "B"}), Edit("holidays", "2027-12-25", {"name": "Christmas"})])


def test_the_lines_ends_and_the_mark_of_some_editors_stay():
    text = b"\xef\xbb\xbf" + FILE.replace(b"\n", b"\r\n")
    changed = edited(text, [Edit("lanes", "out", {"name": 'Way "out" # 2'})])
    assert changed == text.replace(b'"Exit"', b'"Way \\"out\\" # 2"')


def test_windows_of_their_own_tables_become_one_list():
    tables = FILE.replace(
        b"""windows = [
  { days = ["mon", "tue"], start = "06:00", end = "18:00" },
]
""",
        b"""[[schedules.windows]]
days = ["mon"]
start = 06:00:00
end = 18:00:00
""",
    )
    window = {"days": ["sat"], "start": "08:00", "end": "12:00"}
    read = tomllib.loads(edited(tables, [Edit("schedules", "day", windows=(window,))]).decode())
    assert read["schedules"] == [{"id": "day", "windows": [window]}]


@pytest.mark.parametrize(
    "edit",
    [
        Edit("lanes", "in", {"gate": 7}),
        Edit("lanes", "in", remove=True),
        Edit("lanes", "none", {"name": "A"}),
        Edit("api", "", {"port": 1}),
        Edit("holidays", "2030-01-01", remove=True),
    ],
    ids=["another key", "a lane goes", "no such lane", "another section", "no such day"],
)
def test_what_cannot_be_edited_is_refused(edit):
    with pytest.raises(ConfigError):
        edited(FILE, [edit])


def test_a_broken_file_is_refused():
    with pytest.raises(ConfigError, match="cannot be edited"):
        edited(b"[site", [Edit("site", "", {"name": "A"})])


@pytest.mark.parametrize(
    "edits",
    [
        [Edit("lanes", "in", {"held_open_seconds": 33, "clear_seconds": 9})],
        [Edit("lanes", "in", {"held_open_seconds": None})],
        [Edit("holidays", "2026-12-26", {"name": "Boxing Day"}), Edit("holidays", "2026-12-26", {"name": "Another"})],
        [Edit("schedules", "late", windows=({"days": ["fri"], "start": "22:00", "end": "23:00"},))],
        [Edit("schedules", "day", windows=({"days": ["fri"], "start": "22:00", "end": "23:00"},))],
        [Edit("holidays", "2027-01-01", remove=True)],
        [Edit("site", values={"name": "Winter"}), Edit("holidays", "2026-12-26", {"name": "Boxing Day"})],
    ],
)
def test_the_inverse_leads_back(edits):
    there = edited(FILE, edits)
    assert there != FILE
    assert meaning(edited(there, inverse(FILE, edits))) == meaning(FILE)


def meaning(text: bytes) -> str:
    """The content of a file; a date is the same as a date or as a text."""
    return json.dumps(tomllib.loads(text.decode()), default=str, sort_keys=True)


def test_an_entry_that_was_removed_comes_back_whole():
    edits = [Edit("holidays", "2026-12-26", {"name": "Boxing Day"})]
    there = edited(b"[site]\nname = 'North'\n", edits)
    gone = [Edit("holidays", "2026-12-26", remove=True)]
    assert tomllib.loads(edited(edited(there, gone), inverse(there, gone)).decode()) == tomllib.loads(there.decode())
