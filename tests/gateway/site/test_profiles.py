"""What a site file says of profiles and their points is judged with it."""

from __future__ import annotations

import pytest

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
    assert faults(tmp_path, profile="nothing") == ["devices[0].profile: no profile 'nothing'"]


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


def test_an_input_module_is_no_gate(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(_SITE.format(profile="inputs-8", point="arming_loop"))
    with pytest.raises(SiteFaults) as error:
        load(path)
    assert "devices[0].profile" in str(error.value.faults[0])
    assert "commands: Field required" in str(error.value.faults[0])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (('name = "A"', 'name = "A"\ntimezone = "America"'), "site.timezone: no time zone 'America'"),
        (("id = 101\n", "id = true\n"), "devices[0].id: "),
        (("id = 101\n", 'id = "101"\n'), "devices[0].id: "),
        (
            (
                "[[links]]",
                '[central]\nurl = "https://c"\nusername = "u"\npassword = "p"\nca_file = "/no/where"\n[[links]]',
            ),
            "central.ca_file: /no/where: No such file",
        ),
        (
            (
                "[[links]]",
                '[[api.accounts]]\nusername = "u"\npassword = "p"\npermissions = ["view_devices"]\n[[links]]',
            ),
            "api.accounts[0].permissions[0]: ",
        ),
    ],
)
def test_what_a_site_file_cannot_say(tmp_path, change, fault):
    path = tmp_path / "site.toml"
    path.write_text(_SITE.format(profile="relay-barrier", point="arming_loop").replace(*change))
    with pytest.raises(SiteFaults) as refused:
        load(path)
    assert any(str(item).startswith(fault) for item in refused.value.faults), refused.value.faults
