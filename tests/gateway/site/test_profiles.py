"""Judgement of a site file's profiles and their points."""

from __future__ import annotations

import pytest

from drivers.profile_file import SHIPPED_PROFILES
from gateway.site import SiteFaults, load

_SITE = """
[site]
name = "A"
[[links]]
id = "bus"
url = "tcp://127.0.0.1:1502"
[[devices]]
id = 101
name = "Barrier"
driver = "modbus-gate"
link = "bus"
profile = "{profile}"
[[lanes]]
id = "in"
name = "In"
gate = 101
arming = {{ device = 101, point = "{point}" }}
closing = {{ device = 101, point = "closing_loop" }}
"""


def faults(tmp_path, *, profile="relay-barrier", point="arming_loop"):
    path = tmp_path / "site.toml"
    path.write_text(_SITE.format(profile=profile, point=point))
    try:
        load(path)
    except SiteFaults as error:
        return [str(fault) for fault in error.faults]
    return []


def test_good_site(tmp_path):
    assert faults(tmp_path) == []


def test_point_that_the_profile_does_not_have(tmp_path):
    (fault,) = faults(tmp_path, point="arming_lop")
    assert fault.startswith("lanes[0].arming.point: device 101 has no point 'arming_lop' (it has arming_loop, closed")


def test_profile_that_is_missing(tmp_path):
    there = "'edge-gateway drivers' lists all profiles"
    assert faults(tmp_path, profile="nothing") == [f"devices[0].profile: no profile 'nothing'; {there}"]
    near = "did you mean 'relay-barrier'?"
    assert faults(tmp_path, profile="relay-barier") == [f"devices[0].profile: no profile 'relay-barier'; {near}"]


@pytest.mark.parametrize("text", ["name = ", 'name = "x"'])
def test_profile_that_cannot_be_used(tmp_path, text):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.toml").write_text(text)
    found = faults(tmp_path, profile="mine")
    assert found
    assert all(fault.startswith("devices[0].profile: ") for fault in found)


MODULE = """
[[devices]]
id = 102
name = "Loops"
driver = "modbus-io"
link = "bus"
profile = "{profile}"
unit = 2
"""


def module_faults(tmp_path, *, profile="inputs-8", point="arming_loop", extra=""):
    path = tmp_path / "site.toml"
    text = _SITE.format(profile="waveshare-relay", point=point) + MODULE.format(profile=profile) + extra
    path.write_text(text.replace("{ device = 101", "{ device = 102"))
    try:
        load(path)
    except SiteFaults as error:
        return [str(fault) for fault in error.faults]
    return []


def test_loops_may_be_wired_to_another_module_than_the_gates(tmp_path):
    assert module_faults(tmp_path) == []
    assert module_faults(tmp_path, profile="relay-barrier") == []
    (fault,) = module_faults(tmp_path, point="relay_1")
    assert fault.startswith("lanes[0].arming.point: device 102 has no point 'relay_1'")


@pytest.mark.parametrize(
    ("profile", "driver", "fault"),
    [
        (
            "inputs-8",
            "modbus-gate",
            """profile 'inputs-8' has no commands, so it moves no gate; it is for driver = "modbus-io", not for""",
        ),
        ("lcus-1", "modbus-gate", """profile 'lcus-1' is for driver = "serial-gate", not for "modbus-gate\""""),
        ("lcus-1", "modbus-io", """profile 'lcus-1' is for driver = "serial-gate", not for "modbus-io\""""),
        ("uhf-iqrfid-5102", "serial-gate", "profile 'uhf-iqrfid-5102' is for driver = \"serial-tag-reader\", not for"),
        ("lcus-1", "serial-tag-reader", """profile 'lcus-1' is for driver = "serial-gate", not for"""),
        (
            "relay-barrier",
            "serial-gate",
            """profile 'relay-barrier' is for driver = "modbus-gate" or driver = "modbus-io", not for "serial-gate\"""",
        ),
    ],
)
def test_a_profile_of_another_family_is_one_fault(tmp_path, profile, driver, fault):
    path = tmp_path / "site.toml"
    text = _SITE.format(profile=profile, point="arming_loop").replace("modbus-gate", driver)
    path.write_text(text)
    with pytest.raises(SiteFaults) as error:
        load(path)
    (found,) = [found for found in error.value.faults if found.place.startswith("devices")]
    assert str(found).startswith(f"devices[0].profile: {fault}")


LANE = """
[[lanes]]
id = "out"
name = "Out"
gate = 103
arming = {{ device = 101, point = "{arming}" }}
closing = {{ device = 101, point = "{closing}" }}
[[links]]
id = "usb"
url = "serial:/dev/ttyUSB0"
[[devices]]
id = 103
name = "Relay"
driver = "serial-gate"
link = "usb"
profile = "{profile}"
"""


def lane_faults(tmp_path, old="", new="", *, profile="lcus-1", arming="photocell", closing="fault"):
    path = tmp_path / "site.toml"
    text = _SITE.format(profile="relay-barrier", point="arming_loop")
    text += LANE.format(profile=profile, arming=arming, closing=closing)
    path.write_text(text.replace(old, new) if old else text)
    try:
        load(path)
    except SiteFaults as error:
        return [str(fault) for fault in error.faults]
    return []


def test_a_gate_that_cannot_be_closed_is_not_closed_by_the_gateway(tmp_path):
    assert lane_faults(tmp_path) == []
    assert lane_faults(tmp_path, "gate = 103", 'gate = 103\ncloses = "gateway"') == [
        "lanes[1].closes: 'gateway' needs a command to close, and profile 'lcus-1' has none"
    ]
    path = tmp_path / "site.toml"
    text = _SITE.format(profile="waveshare-relay", point="arming_loop").replace("{ device = 101", "{ device = 102")
    path.write_text(text + 'closes = "gateway"\n' + MODULE.format(profile="inputs-8"))
    with pytest.raises(SiteFaults) as error:
        load(path)
    assert [str(fault) for fault in error.value.faults] == [
        "lanes[0].closes: 'gateway' needs to know where the gate is, and profile 'waveshare-relay' has no position"
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            'point = "closing_loop" }',
            'point = "closed_limit" }',
            "lanes[0].closing.point: 'closed_limit' is the gate's closed limit in its profile, not a closing loop",
        ),
        (
            'point = "closing_loop" }',
            'point = "closing_loop" }\nsafety = [{ device = 101, point = "open_limit" }]',
            "lanes[0].safety[0].point: 'open_limit' is the gate's open limit in its profile, not a safety point",
        ),
        (
            'point = "fault" }',
            'point = "closing_loop" }',
            "lanes[1].closing: is the closing loop of lanes[0] too: every vehicle on it would pass in both",
        ),
    ],
)
def test_what_is_no_loop_of_the_lane(tmp_path, old, new, fault):
    assert lane_faults(tmp_path, old, new) == [fault]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (('name = "A"', 'name = "A"\ntimezone = "America"'), "site.timezone: no time zone 'America'"),
        (("id = 101\n", "id = true\n"), "devices[0].id: "),
        (("id = 101\n", 'id = "101"\n'), "devices[0].id: "),
    ],
)
def test_what_a_site_file_cannot_say(tmp_path, change, fault):
    path = tmp_path / "site.toml"
    path.write_text(_SITE.format(profile="relay-barrier", point="arming_loop").replace(*change))
    with pytest.raises(SiteFaults) as refused:
        load(path)
    assert any(str(item).startswith(fault) for item in refused.value.faults), refused.value.faults


def test_profile_whose_commands_do_the_same_is_refused_by_check(tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    shipped = (SHIPPED_PROFILES / "relay-barrier.toml").read_text()
    (folder / "twin.toml").write_text(shipped.replace('"coil", address = 1', '"coil", address = 0'))
    (fault,) = faults(tmp_path, profile="twin")
    assert "commands.close writes the same as commands.open: give each its own output" in fault


def test_safety_point_that_is_listed_twice_is_refused(tmp_path):
    point = '{ device = 101, point = "arming_loop" }'
    assert lane_faults(tmp_path, "gate = 103", f"gate = 103\nsafety = [{point}]") == []
    (fault,) = lane_faults(tmp_path, "gate = 103", f"gate = 103\nsafety = [{point}, {point}]")
    assert fault.startswith("lanes[1].safety[1]: 'arming_loop' of device 101 is listed twice; remove it")


ALIASES = """
name = "Aliases"
position = { closed_point = "closed", open_point = "opened" }
[points]
closed = { table = "discrete_input", address = 0 }
opened = { table = "discrete_input", address = 1 }
arming_loop = { table = "discrete_input", address = 2 }
closing_loop = { table = "discrete_input", address = 3 }
beam = { table = "discrete_input", address = 4 }
curtain = { table = "discrete_input", address = 4, stale_ms = 500 }
edge = { table = "discrete_input", address = 4, inverted = true }
[commands]
open = { write = "coil", address = 0 }
close = { write = "coil", address = 1 }
"""


@pytest.mark.parametrize(
    ("safety", "fault"),
    [
        (
            ("beam", "curtain"),
            "'curtain' is the same input of device 101 as 'beam' (a safety point); name the input that is meant",
        ),
        (("beam", "edge"), None),
        (("beam",), None),
    ],
)
def test_one_input_under_two_names_as_two_safety_points(tmp_path, safety, fault):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "aliases.toml").write_text(ALIASES)
    listed = ", ".join(f'{{ device = 101, point = "{point}" }}' for point in safety)
    path = tmp_path / "site.toml"
    path.write_text(_SITE.format(profile="aliases", point="arming_loop") + f"safety = [{listed}]\n")
    if fault is None:
        load(path)
        return
    with pytest.raises(SiteFaults) as refused:
        load(path)
    assert [str(one) for one in refused.value.faults] == [f"lanes[0].safety[1].point: {fault}"]
