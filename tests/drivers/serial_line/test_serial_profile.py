"""Profile files: every one of ours can be used, its frames are the devices', and a slip is found with its place."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from drivers.profile_file import ProfileError
from drivers.serial_line.profile import (
    GateProfile,
    load_gate_profile,
    load_tag_reader_profile,
)
from drivers.serial_line.status import position_in

FRAMES = [
    ("lcus-1", 1, "commands.open", "A0 01 01 A2"),
    ("lcus-1", 1, "commands.open.release", "A0 01 00 A1"),
    ("turnstile-eb-left", 1, "commands.open", "EB 01 40 00 AA"),
    ("turnstile-eb-right", 1, "commands.open", "EB 01 41 00 AB"),
    ("turnstile-eb-left", 7, "commands.open", "EB 07 40 00 AC"),
    ("speed-gate-7e-left", 1, "status", "7E 00 01 10 00 00 00 70"),
    ("speed-gate-7e-right", 1, "status", "7E 00 01 10 00 00 00 70"),
    ("nice-bust4", 0xFF, "commands.open", "55 0C 00 FF 00 66 01 05 9D 01 82 03 64 E4 0C"),
    ("nice-bust4", 0xFF, "commands.close", "55 0C 00 FF 00 66 01 05 9D 01 82 04 64 E3 0C"),
    ("nice-bust4", 0xFF, "commands.stop", "55 0C 00 FF 00 66 01 05 9D 01 82 02 64 E5 0C"),
    ("adam-4050-ascii", 0x15, "commands.open", b"#151201\r".hex()),
    ("adam-4050-ascii", 0x33, "status", b"$336\r".hex()),
    ("line-barrier", 1, "commands.open", b"OPEN\r\n".hex()),
]


@pytest.mark.parametrize(("name", "unit", "what", "frame"), FRAMES)
def test_frames_are_the_devices(profiles, name, unit, what, frame):
    profile = load_gate_profile(profiles / f"{name}.toml")
    assert profile.request(dict(profile.sends())[what], unit=unit) == bytes.fromhex(frame)


def test_the_inventory_of_the_uhf_reader(profiles):
    profile = load_tag_reader_profile(profiles / "uhf-iqrfid-5102.toml")
    assert profile.poll is not None
    assert profile.request(profile.poll.send, unit=0) == bytes.fromhex("04 00 01 DB 4B")


def test_every_profile_of_this_family_can_be_used_and_its_frames_are_tried(profiles):
    texts = {path: path.read_text() for path in profiles.glob("*.toml")}
    ours = {path: text for path, text in texts.items() if 'family = "serial-line"' in text}
    for path, text in ours.items():
        load = load_tag_reader_profile if 'kind = "tag-reader"' in text else load_gate_profile
        assert load(path).examples
    assert {path.stem for path in ours} == {name for name, *_ in FRAMES} | {"uhf-iqrfid-5102"}


def state_of(profile: GateProfile, frame: str, *, commanded=None, before=GatePosition.UNKNOWN):
    data = bytes.fromhex(frame)
    points = {name: point.state_in(data) for name, point in profile.points.items()}
    return position_in(data, profile.position, points, before=before, commanded=commanded), points


@pytest.mark.parametrize(
    ("door", "before", "commanded", "position"),
    [
        (0, GatePosition.OPEN, None, GatePosition.CLOSED),
        (1, GatePosition.CLOSED, None, GatePosition.OPEN),
        (2, GatePosition.CLOSED, None, GatePosition.OPEN),
        (3, GatePosition.CLOSED, None, GatePosition.OPENING),
        (3, GatePosition.OPEN, None, GatePosition.CLOSING),
        (3, GatePosition.OPENING, GatePosition.CLOSING, GatePosition.CLOSING),
        (4, GatePosition.CLOSED, None, GatePosition.UNKNOWN),
        (9, GatePosition.CLOSED, None, GatePosition.UNKNOWN),
    ],
)
def test_the_speed_gates_door_byte(profiles, door, before, commanded, position):
    profile = load_gate_profile(profiles / "speed-gate-7e-left.toml")
    frame = f"7F 10 01 00 {door:02X} 00 00 00 07 00 00 05 01 00 18 00 00 00"
    seen, points = state_of(profile, frame, before=before, commanded=commanded)
    assert seen is position
    assert points["fire"] is (PointState.ON if door == 4 else PointState.OFF)
    assert points["photocell"] is PointState.ON
    assert points["fault"] is PointState.OFF


def test_what_a_short_frame_leaves_out_is_unknown(profiles):
    profile = load_gate_profile(profiles / "speed-gate-7e-left.toml")
    seen, points = state_of(profile, "7F 10 01")
    assert seen is GatePosition.UNKNOWN
    assert set(points.values()) == {PointState.UNKNOWN}


def test_digits_that_are_none_are_unknown(profiles):
    profile = load_gate_profile(profiles / "adam-4050-ascii.toml")
    assert set(state_of(profile, b"!11zz00\r".hex())[1].values()) == {PointState.UNKNOWN}
    assert state_of(profile, b"!112200\r".hex())[1]["open_limit"] is PointState.ON


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'sends = "7E 00 01 10 00 00 00 70"',
            'sends = "7E 00 01 10 00 00 00 71"',
            "comes out as 7E 00 01 10 00 00 00 70",
        ),
        ("00 18 00 00 4B", "00 18 00 00 4C", "the reply is no frame"),
        ('answer = "7F .. unit"\n\n# With', 'answer = "7F .. 02"\n\n# With', "does not answer the query"),
        ('only_from = ["closed"]\n', "", "safe only from known positions"),
        ('only_from = ["closed"]', 'only_from = ["unknown"]', "nothing is safe from an unknown position"),
        ('send = "7E 00 unit 84 00 00 00 check"', 'send = "7E 00 unit 84 .. 00 00 check"', "every byte that is sent"),
        ('send = "7E 00 unit 84 00 00 00 check"', 'send = "7E 00 unit 84 00 00 00 chek"', "'chek' is neither"),
        ("length = 18", "length = 0", "replies.length"),
        (
            'algorithm = "sum-complement", at = -1 }]\n\n[replies]',
            'algorithm = "md5", at = -1 }]\n\n[replies]',
            "requests.checks",
        ),
        ("fault = { at = 3 }", "fault = { at = 3, mask = 1, equals = 2 }", "do not go together"),
        ("idempotent = true", "idempotent = true\npulse_ms = 300", "go together"),
        ('kind = "gate"', 'kind = "tag-reader"', "kind"),
        ("poll_ms = 200", "poll_seconds = 1", "poll_seconds"),
    ],
)
def test_a_slip_is_found_with_its_place(tmp_path, profiles, old, new, words):
    text = (profiles / "speed-gate-7e-left.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_gate_profile(path)
    assert words in str(caught.value)
    assert all(line.startswith(f"{path}: ") for line in str(caught.value).splitlines() if line.startswith("/"))


@pytest.mark.parametrize("text", ["name = ", "\x00"])
def test_a_file_that_is_no_toml(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ProfileError, match="is not TOML"):
        load_gate_profile(path)
    with pytest.raises(ProfileError, match="cannot be read"):
        load_gate_profile(tmp_path / "none.toml")
