"""Plate cameras and Hikvision barriers in a site file: what is good, and each fault with its place."""

import pytest

from gateway.app.devices import build_field
from gateway.cli.check import summary
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.site import SiteFaults, load, secrets_beside

GOOD = """
[site]
name = "North"
[[links]]
id = "camera"
url = "http://192.0.2.10"
[[links]]
id = "other-camera"
url = "https://192.0.2.11:8443/"
[[links]]
id = "pushes"
url = "http-listen://127.0.0.1:8481"
[[links]]
id = "loops"
url = "tcp://127.0.0.1:5020"
[[devices]]
id = 101
name = "Barrier"
driver = "hikvision-barrier"
link = "camera"
username = "gateway"
password = "camera-password"
[[devices]]
id = 102
name = "Loops"
driver = "modbus-gate"
link = "loops"
profile = "relay-barrier"
[[devices]]
id = 41
name = "Pulled plates"
driver = "hikvision-plates"
link = "camera"
username = "gateway"
password = "camera-password"
[[devices]]
id = 42
name = "Snapshots"
driver = "dahua-plates"
link = "other-camera"
username = "gateway"
password = "camera-password"
silence_seconds = 20
[[devices]]
id = 43
name = "Pushed plates"
driver = "hikvision-plates"
link = "pushes"
source = "192.0.2.12"
[[devices]]
id = 44
name = "Verifier"
driver = "axis-plates"
link = "pushes"
token = "push-token"
[[devices]]
id = 45
name = "Recogniser"
driver = "plate-recognizer"
link = "pushes"
token = "push-token"
camera = "entry"
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
readers = [41, 44]
arming = { device = 102, point = "arming_loop" }
closing = { device = 102, point = "closing_loop" }
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGE_GATEWAY_SECRET_CAMERA_PASSWORD", "correct-horse")
    monkeypatch.setenv("EDGE_GATEWAY_SECRET_PUSH_TOKEN", "sesame-open")
    return tmp_path / "site.toml"


def faults(path, text):
    path.write_text(text)
    with pytest.raises(SiteFaults) as raised:
        load(path)
    return [str(fault) for fault in raised.value.faults]


def changed(*pairs):
    text = GOOD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_good_site_becomes_drivers(place):
    place.write_text(GOOD)
    site = load(place)
    field = build_field(site, site_path=place, clock=SystemClock(), secrets=secrets_beside(place))
    assert set(field.gates) == {101, 102}
    assert sorted(driver.device_id for driver in field.drivers) == [41, 42, 43, 44, 45, 101, 102]
    assert set(field.listeners) == {"pushes"}
    assert "2 gates, 5 readers" in summary(site)


def test_secret_that_went_away_is_a_fault_of_the_site(place, monkeypatch):
    place.write_text(GOOD)
    site = load(place)
    monkeypatch.delenv("EDGE_GATEWAY_SECRET_PUSH_TOKEN")
    with pytest.raises(ConfigError, match="push-token"):
        build_field(site, site_path=place, clock=SystemClock(), secrets=secrets_beside(place))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('link = "other-camera"', 'link = "pushes"', "devices[3].link: 'pushes' must be http://host for this device"),
        (
            'driver = "hikvision-plates"\nlink = "pushes"',
            'driver = "hikvision-plates"\nlink = "camera"',
            "devices[4].link: 'camera' must be http-listen://host:port for this device",
        ),
        (
            'link = "loops"',
            'link = "camera"',
            "devices[1].link: 'camera' must be tcp://host:port or serial:/dev/… for this device",
        ),
        ('source = "192.0.2.12"', 'source = "camera"', "devices[4].source: must be an IP address"),
        (
            'source = "192.0.2.12"',
            "",
            "devices[4]: needs either 'username' and 'password', or 'source' or 'token' when it pushes",
        ),
        (
            'source = "192.0.2.12"',
            'username = "gateway"',
            "devices[4]: 'username' and 'password' go together",
        ),
        (
            'token = "push-token"\n[[devices]]',
            "[[devices]]",
            "devices[5]: needs 'source' or 'token': otherwise anyone could push a plate",
        ),
        ("http-listen://127.0.0.1:8481", "http-listen://127.0.0.1", "links[2].url: must be http-listen://host:port"),
        ("http://192.0.2.10", "http://192.0.2.10/ISAPI", "links[0].url: must be http://host:port"),
        (
            "http://192.0.2.10",
            "http://gw:secret@192.0.2.10",
            "links[0].url: must not hold credentials; name a secret in 'password'",
        ),
        ("https://192.0.2.11:8443/", "http://192.0.2.10:80", "links[1].url: 192.0.2.10:80 is already used by links[0]"),
        (
            "http-listen://127.0.0.1:8481",
            "http-listen://127.0.0.1:8480",
            "links[2].url: 127.0.0.1:8480 is where this gateway itself listens ([api] port)",
        ),
        ("gate = 101", "gate = 41", "lanes[0].gate: device 41 is not a gate"),
        ("readers = [41, 44]", "readers = [101]", "lanes[0].readers[0]: device 101 is not a reader"),
        (
            'arming = { device = 102, point = "arming_loop" }',
            'arming = { device = 101, point = "arming_loop" }',
            "lanes[0].arming.device: device 101 is not a device with points",
        ),
    ],
)
def test_a_fault_of_an_http_device_is_named_with_its_place(place, old, new, fault):
    assert fault in faults(place, changed((old, new)))


def test_colon_in_a_user_name_is_refused(place):
    (fault,) = faults(place, changed(('username = "gateway"', 'username = "gate:way"')))
    assert fault.startswith("devices[0].username")


def test_missing_secrets_are_named(place, monkeypatch):
    monkeypatch.delenv("EDGE_GATEWAY_SECRET_CAMERA_PASSWORD")
    monkeypatch.delenv("EDGE_GATEWAY_SECRET_PUSH_TOKEN")
    named = [fault.split(":")[0] for fault in faults(place, GOOD)]
    assert named == [
        "devices[0].password",
        "devices[2].password",
        "devices[3].password",
        "devices[5].token",
        "devices[6].token",
    ]
