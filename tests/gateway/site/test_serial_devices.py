"""Serial gates and tag readers of a site file, judged with their profiles and made into drivers."""

from __future__ import annotations

import pytest

from drivers.serial_line.gate import SerialGate
from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader
from gateway.app.devices import KeptDevices, build_field
from gateway.runtime.clock import SystemClock
from gateway.site import SiteFaults, load, secrets_beside

_SITE = """
[site]
name = "A"
[[links]]
id = "line"
url = "serial:/dev/ttyUSB0"
[[links]]
id = "other"
url = "serial:/dev/ttyUSB1"
[[devices]]
id = 101
name = "Barrier"
driver = "serial-gate"
link = "line"
profile = "adam-4050-ascii"
unit = 21
[[devices]]
id = 102
name = "Turnstile"
driver = "serial-gate"
link = "line"
profile = "turnstile-eb-left"
unit = 2
[[devices]]
id = 201
name = "Tags"
driver = "serial-tag-reader"
link = "other"
profile = "uhf-iqrfid-5102"
[[lanes]]
id = "in"
name = "In"
gate = 101
readers = [201]
arming = { device = 101, point = "arming_loop" }
closing = { device = 101, point = "closing_loop" }
"""

_SPEAKING = """
family = "serial-line"
kind = "tag-reader"
name = "Speaker"
readings = ["02"]
[replies]
start = "02"
length = 9
[tags]
first = 1
length = 6
tail = 2
"""


@pytest.fixture
def site_path(tmp_path):
    def write(*changes):
        text = _SITE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "profiles").mkdir(exist_ok=True)
        (tmp_path / "profiles" / "speaker.toml").write_text(_SPEAKING)
        path = tmp_path / "site.toml"
        path.write_text(text)
        return path

    return write


def faults(path):
    try:
        load(path)
    except SiteFaults as error:
        return [str(fault) for fault in error.faults]
    return []


def test_a_good_site_becomes_drivers(site_path):
    path = site_path()
    field = build_field(load(path), site_path=path, clock=SystemClock(), secrets=secrets_beside(path))
    assert sorted(field.buses) == ["line", "other"]
    assert {type(gate) for gate in field.gates.values()} == {SerialGate}
    assert [type(driver) for driver in field.drivers if driver.device_id == 201] == [PolledTagReader]
    assert field.unplaced == {102}, "nothing reports where the turnstile is"


def test_limit_switches_on_another_device_tell_where_a_gate_without_a_position_is(site_path):
    closed, opened = '{ device = 101, point = "fault" }', '{ device = 101, point = "photocell" }'
    lane = f'gate = 102\ncloses = "device"\nclosed_limit = {closed}\nopen_limit = {opened}\n'
    path = site_path(("gate = 101\n", lane))
    field = build_field(load(path), site_path=path, clock=SystemClock(), secrets=secrets_beside(path))
    assert field.unplaced == frozenset()


def test_a_reader_that_speaks_after_a_change_gets_the_line_that_was_shared(site_path):
    path = site_path()
    secrets = secrets_beside(path)
    before = build_field(load(path), site_path=path, clock=SystemClock(), secrets=secrets)
    path = site_path(('"uhf-iqrfid-5102"', '"speaker"'))
    kept = KeptDevices(field=before, without_devices={201})
    field = build_field(load(path), site_path=path, clock=SystemClock(), secrets=secrets, kept=kept)
    assert field.lines == {"line": before.lines["line"]}, "the bus would keep the port from the reader"


def test_a_reader_that_speaks_has_its_line_for_itself(site_path):
    path = site_path(('"uhf-iqrfid-5102"', '"speaker"'))
    field = build_field(load(path), site_path=path, clock=SystemClock(), secrets=secrets_beside(path))
    assert sorted(field.buses) == ["line"]
    assert [type(driver) for driver in field.drivers if driver.device_id == 201] == [SpeakingTagReader]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([('"adam-4050-ascii"', '"none"')], "devices[0].profile: no profile 'none'"),
        ([('"uhf-iqrfid-5102"', '"lcus-1"')], "devices[2].profile: "),
        ([('"adam-4050-ascii"', '"relay-barrier"')], "devices[0].profile: "),
        ([("unit = 2\n", "unit = 21\n")], "devices[1].unit: 21 on 'line' is already used by devices[0]"),
        (
            [('"turnstile-eb-left"', '"lcus-1"')],
            "devices[1].link: LCUS-1 USB relay has no address and cannot share 'line'",
        ),
        (
            [('link = "other"', 'link = "line"'), ('"uhf-iqrfid-5102"', '"speaker"')],
            "devices[2].link: Speaker sends unasked and cannot share 'line'",
        ),
        (
            [("serial:/dev/ttyUSB0", "tcp://127.0.0.1:4001"), ('"turnstile-eb-left"', '"nice-bust4"')],
            "devices[1].link: Nice BusT4 wants a break before each frame, which 'line' cannot send",
        ),
        ([('point = "arming_loop"', 'point = "arming"')], "lanes[0].arming.point: device 101 has no point 'arming'"),
        ([("gate = 101", "gate = 201")], "lanes[0].gate: device 201 is not a gate"),
        ([("readers = [201]", "readers = [102]")], "lanes[0].readers[0]: device 102 is not a reader"),
        (
            [
                (
                    'driver = "serial-gate"\nlink = "line"\nprofile = "turnstile-eb-left"',
                    'driver = "modbus-gate"\nlink = "line"\nprofile = "relay-barrier"\nframing = "rtu"',
                )
            ],
            "devices[1].link: 'line' is already used by devices[0]",
        ),
        ([("unit = 21", "unit = 256")], "devices[0].unit: "),
        (
            [('profile = "uhf-iqrfid-5102"', 'profile = "uhf-iqrfid-5102"\nhold_seconds = 0')],
            "devices[2].hold_seconds: ",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(site_path, changes, expected):
    found = faults(site_path(*changes))
    assert any(fault.startswith(expected) for fault in found), found
