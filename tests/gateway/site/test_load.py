"""Every fault of a site file at once, each with its place."""

import copy
import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from drivers.kinds import built_in
from gateway.site import Secrets, Site, SiteFaults, check, find_profile, load, profile_folders
from gateway.site.faults import faults_of
from gateway.site.formats import understood

GOOD = """
[site]
name = "North"
[api]
port = 8480
[central]
url = "http://127.0.0.1:8490"
username = "gw"
password = "central-password"
[[links]]
id = "gates"
url = "tcp://127.0.0.1:5020"
[[links]]
id = "reader"
url = "serial:/dev/ttyUSB0"
[[devices]]
id = 101
name = "Gate"
driver = "modbus-gate"
link = "gates"
profile = "barrier"
[[devices]]
id = 102
name = "Second gate"
driver = "modbus-gate"
link = "gates"
profile = "barrier"
unit = 2
[[devices]]
id = 201
name = "Reader"
driver = "serial-reader"
link = "reader"
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
readers = [201]
cameras = [301]
arming = { device = 101, point = "arming_loop" }
closing = { device = 101, point = "closing_loop" }
[[lanes]]
id = "exit"
name = "Exit"
gate = 102
arming = { device = 102, point = "arming_loop" }
closing = { device = 102, point = "closing_loop" }
[[cameras]]
id = 301
name = "Camera"
url = "rtsp://127.0.0.1/one"
username = "viewer"
password = "camera-password"
"""
SECRETS = {f"EDGE_GATEWAY_SECRET_{name}_PASSWORD": "x" for name in ("CENTRAL", "CAMERA")}

PROFILES = Path(__file__).resolve().parents[3] / "drivers" / "profiles"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "profiles").mkdir()
    shutil.copy(PROFILES / "relay-barrier.toml", tmp_path / "profiles" / "barrier.toml")
    return tmp_path


def faults(place, text, environ=SECRETS):
    path = place / "site.toml"
    path.write_text(text)
    try:
        load(path, secrets=Secrets(folder=place / "secrets", environ=environ))
    except SiteFaults as error:
        return [str(fault) for fault in error.faults]
    return []


def missing_secret(place, name):
    variable = f"EDGE_GATEWAY_SECRET_{name.upper().replace('-', '_')}"
    return f"no secret {name!r}: not among systemd's credentials, not in {variable}, no file {place}/secrets/{name}"


def changed(*changes):
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_good_site_has_no_fault(place):
    assert faults(place, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('name = "North"', 'name = "North"\nnmae = 1', "site.nmae: unknown key"),
        ("unit = 2", "unit = 2\nunti = 2", "devices[1].unti: unknown key"),
        ("[[cameras]]", "[[camera]]", "camera: unknown key"),
        ('name = "Gate"', "", "devices[0].name: is required"),
        ('driver = "serial-reader"', "", "devices[2].driver: is required"),
        (
            'driver = "serial-reader"',
            'driver = "wiegand"',
            f"devices[2].driver: no driver 'wiegand' is installed; there are {', '.join(sorted(built_in()))}",
        ),
        ("id = 102", "id = 101", "devices[1].id: 101 is already used by devices[0]"),
        ('id = "reader"', 'id = "gates"', "links[1].id: 'gates' is already used by links[0]"),
        ('id = "exit"', 'id = "entry"', "lanes[1].id: 'entry' is already used by lanes[0]"),
        ("gate = 102", "gate = 103", "lanes[1].gate: no device 103"),
        ("gate = 102", "gate = 201", "lanes[1].gate: device 201 is not a gate"),
        ("gate = 102", "gate = 101", "lanes[1].gate: 101 is already used by lanes[0]"),
        ("readers = [201]", "readers = [102]", "lanes[0].readers[0]: device 102 is not a reader"),
        ("readers = [201]", "readers = 201", "lanes[0].readers: must be a list in brackets, even of one: [ … ]"),
        ("readers = [201]", "readers = [201, 201]", "lanes[0].readers[1]: 201 is named twice"),
        ("gate = 102", "gate = 102\nreaders = [201]", "lanes[1].readers[0]: 201 already serves lanes[0]"),
        ("cameras = [301]", "cameras = [302]", "lanes[0].cameras[0]: no camera 302"),
        ("cameras = [301]", "cameras = [301, 301]", "lanes[0].cameras[1]: 301 is named twice"),
        (
            'device = 101, point = "arming_loop"',
            'device = 201, point = "arming_loop"',
            "lanes[0].arming.device: device 201 is not a device with points",
        ),
        (
            'device = 101, point = "arming_loop"',
            'device = 101, point = "closing_loop"',
            "lanes[0].closing: is the same point as arming; a passage needs both loops",
        ),
        (
            "gate = 102",
            'gate = 102\nsafety = [{ device = 109, point = "photocell" }]',
            "lanes[1].safety[0].device: no device 109",
        ),
        ('link = "reader"', 'link = "raeder"', "devices[2].link: no link 'raeder'"),
        ('link = "reader"', 'link = "gates"', "devices[2].link: 'gates' is already used by devices[0]"),
        ("unit = 2", "", "devices[1].unit: 1 on 'gates' is already used by devices[0]"),
        (
            "unit = 2",
            'unit = 2\nframing = "rtu"',
            "devices[1].framing: differs from devices[0] on the same link 'gates'",
        ),
        (
            "unit = 2",
            'unit = 0\nframing = "rtu"',
            "devices[1].unit: 0 addresses all devices of the line, and none answers",
        ),
        (
            "unit = 2",
            "unit = 250",
            "devices[1].unit: is 250; units are 1 to 247, or 255 for the device itself",
        ),
        (
            "unit = 2",
            'unit = 255\nframing = "rtu"',
            "devices[1].unit: is 255; units are 1 to 247",
        ),
        (
            "tcp://127.0.0.1:5020",
            "serial:/dev/ttyS0",
            "devices[0].framing: 'tcp' cannot go over the serial port of 'gates'; write 'rtu'",
        ),
        (
            "serial:/dev/ttyUSB0",
            "tcp://127.0.0.1:5020",
            "links[1].url: 127.0.0.1:5020 is already used by links[0]",
        ),
        (
            "tcp://127.0.0.1:5020",
            "tcp://localhost:8480",
            "links[0].url: localhost:8480 is where this gateway itself listens ([api] port)",
        ),
        (
            "http://127.0.0.1:8490",
            "http://127.0.0.1:8480",
            "central.url: 127.0.0.1:8480 is where this gateway itself listens ([api] port)",
        ),
        (
            "http://127.0.0.1:8490",
            "http://u:p@h",
            "central.url: must not hold credentials; name a secret in 'password'",
        ),
        ("tcp://127.0.0.1:5020", "tcp://127.0.0.1", "links[0].url: must be tcp://host:port"),
        (
            "rtsp://127.0.0.1/one",
            "whep://localhost:8480/one",
            "cameras[0].url: localhost:8480 is where this gateway itself listens ([api] port)",
        ),
        ('username = "viewer"', "", "cameras[0]: 'username' and 'password' go together"),
        (
            'url = "rtsp://127.0.0.1/one"',
            'url = "whep://127.0.0.1/one"\naudio = "on"',
            "cameras[0]: 'audio' is recorded from rtsp:// and rtsps:// alone: WebRTC sends it in another form",
        ),
        *(
            ('username = "viewer"', f'username = "viewer"\nlive_url = "{url}"', f"cameras[0]{fault}")
            for url, fault in (
                ("http://127.0.0.1/two", ".live_url: must be rtsp://…, rtsps://…, whep://… or wheps://…"),
                (
                    "rtsp://127.0.0.1/one",
                    ": 'live_url' is 'url' itself; leave it out, and what is recorded is shown live",
                ),
                ("rtsp://127.0.0.2/two", ": 'live_url' must be on the camera of 'url': its account goes there too"),
                (
                    "whep://127.0.0.1:8480/two",
                    ".live_url: 127.0.0.1:8480 is where this gateway itself listens ([api] port)",
                ),
            )
        ),
        (
            'username = "viewer"',
            'username = "viewer"\ntoken = "t"',
            "cameras[0]: only what is at whep:// or wheps:// takes a 'token'",
        ),
        (
            'profile = "barrier"',
            'profile = "barier"',
            "devices[0].profile: no profile 'barier'; did you mean 'barrier'?",
        ),
        (
            'name = "North"',
            'name = "North"\ntimezone = "Mars"',
            "site.timezone: no time zone 'Mars'; write one like 'America/Toronto'",
        ),
        (
            'id = "gates"',
            'id = "Gates!"',
            "links[0].id: must be 1 to 40 small letters, digits, '-' or '_', a letter or digit first",
        ),
        (
            "[central]",
            "[storage]\ntransaction_days = 10\n[central]",
            "storage: 'transaction_days' is 10, less than the 30 of 'continuous_days': footage of events goes last",
        ),
        (
            "[central]",
            "[storage]\nmedia_gigabytes = inf\n[central]",
            "storage.media_gigabytes: must be a finite number",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(old, new, fault, place):
    assert fault in faults(place, changed((old, new)))


def test_a_value_where_a_table_belongs_is_a_fault(place):
    text = "api = 3\n" + GOOD.replace("[api]", "[extra]")
    assert sorted(faults(place, text)) == ["api: must be a table", "extra: unknown key"]
    text = "cameras = 3\n" + GOOD.replace("[[cameras]]", "[extra]")
    assert sorted(faults(place, text)) == [
        "cameras: must be tables, each beginning with [[cameras]]",
        "extra: unknown key",
    ]


@pytest.mark.parametrize("name", ["by-id", "by-path/../by-id"])
def test_one_serial_port_under_two_names(place, name, tmp_path):
    port = tmp_path / "ttyUSB0"
    port.touch()
    (tmp_path / "by-path").mkdir()
    (tmp_path / "by-id").symlink_to(port)
    text = changed(("tcp://127.0.0.1:5020", f"serial:{tmp_path}/{name}"), ("/dev/ttyUSB0", str(port)))
    text = text.replace('profile = "barrier"', 'profile = "barrier"\nframing = "rtu"')
    (fault,) = faults(place, text)
    assert fault == f"links[1].url: {port} is already used by links[0]"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp://Gate.example:502", "tcp://gate.example.:502"),
        ("tcp://[::1]:502", "tcp://[0:0:0:0:0:0:0:1]:502"),
    ],
)
def test_one_address_written_in_two_ways(place, one, other):
    text = changed(("tcp://127.0.0.1:5020", one), ("serial:/dev/ttyUSB0", other))
    (fault,) = faults(place, text)
    assert fault.startswith("links[1].url: ")
    assert fault.endswith("is already used by links[0]")


def test_one_fault_is_one_line(place):
    assert faults(place, changed(("gate = 102", "gate = 103"))) == ["lanes[1].gate: no device 103"]


def test_all_faults_inside_the_parts_at_once_and_then_all_between_them(place):
    within = (
        ('name = "North"', 'name = "North"\nnmae = "x"'),
        ("port = 8480", "port = 848000"),
        ("unit = 2", "unit = 999"),
        ('url = "tcp://127.0.0.1:5020"', 'url = "tcp://127.0.0.1:5020"\nbaudd = 9600'),
    )
    between = (("gate = 102", "gate = 103"), ('profile = "barrier"', 'profile = "other"'))
    assert sorted(faults(place, changed(*within, *between))) == [
        "api.port: must be at most 65535",
        "devices[1].unit: must be at most 255",
        "links[0].baudd: unknown key",
        "site.nmae: unknown key",
    ]
    assert sorted(faults(place, changed(*between), environ={})) == [
        f"cameras[0].password: {missing_secret(place, 'camera-password')}",
        f"central.password: {missing_secret(place, 'central-password')}",
        "devices[0].profile: no profile 'other'; 'edge-gateway drivers' lists all profiles",
        "lanes[1].gate: no device 103",
    ]


EVERY_SECRET = """
[fleet]
urls = ["tls://fleet.example.com"]
site = "north"
gateway = "gate-1"
credentials = "s-fleet"
[mqtt]
url = "mqtts://broker.example.com"
site = "north"
gateway = "gate-1"
username = "gw"
password = "s-mqtt"
[rtsp]
username = "screen"
password = "s-rtsp"
[backup]
target = "s3://yard-backups"
access_key = "s-id"
secret_key = "s-key"
[[links]]
id = "asked"
url = "http://192.0.2.1"
[[links]]
id = "pushing"
url = "http-listen://0.0.0.0:8091"
[[links]]
id = "osdp"
url = "tcp://192.0.2.2:4001"
[[devices]]
id = 401
name = "Barrier"
driver = "hikvision-barrier"
link = "asked"
username = "gw"
password = "s-barrier"
[[devices]]
id = 402
name = "Plates"
driver = "axis-plates"
link = "pushing"
token = "s-token"
[[devices]]
id = 403
name = "Keypad"
driver = "osdp-reader"
link = "osdp"
key = "s-osdp"
[[cameras]]
id = 302
name = "WebRTC"
url = "whep://192.0.2.3/one"
token = "s-whep"
"""


def test_each_setting_that_names_a_secret_is_found_wherever_it_stands(place):
    text = changed(('password = "central-password"', 'password = "central-password"\ntotp = "s-totp"')) + EVERY_SECRET
    assert sorted(fault.partition(": no secret")[0] for fault in faults(place, text, environ={})) == [
        "backup.access_key",
        "backup.secret_key",
        "cameras[0].password",
        "cameras[1].token",
        "central.password",
        "central.totp",
        "devices[3].password",
        "devices[4].token",
        "devices[5].key",
        "fleet.credentials",
        "mqtt.password",
        "rtsp.password",
    ]


@pytest.mark.parametrize(("name", "may_be_empty"), [("CAMERA", True), ("CENTRAL", False)])
def test_only_the_password_of_a_camera_or_device_may_be_empty(place, name, may_be_empty):
    found = faults(place, GOOD, environ={**SECRETS, f"EDGE_GATEWAY_SECRET_{name}_PASSWORD": ""})
    assert [fault.rpartition(" ")[2] for fault in found] == ([] if may_be_empty else ["empty"])


def test_a_broken_record_is_not_called_missing_too(place):
    assert faults(place, changed(("unit = 2", "unit = 999"))) == ["devices[1].unit: must be at most 255"]
    assert faults(place, changed(("id = 102\n", ""))) == ["devices[1].id: is required"]
    assert faults(place, changed(("tcp://127.0.0.1:5020", "tcp:"))) == [
        "links[0].url: must begin with tcp://, serial:/, http://, https:// or http-listen://"
    ]
    assert faults(place, changed(("rtsp://127.0.0.1/one", "x"))) == [
        "cameras[0].url: must be rtsp://…, rtsps://…, whep://… or wheps://…"
    ]


def test_no_value_of_a_bad_file_is_repeated_where_it_may_be_a_secret(place):
    text = changed(
        ('password = "central-password"', 'password = "hunter2 !"'), ("rtsp://127.0.0.1", "rtsp://me:hunter2@127.0.0.1")
    )
    found = faults(place, text)
    assert found == [
        "central.password: must be the name of a secret: 1 to 64 letters, digits, '.', '-' or '_'",
        "cameras[0].url: must not hold credentials; name a secret in 'password'",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://127.0.0.1/cam?user=admin&password=hunter2",
        "rtsp://127.0.0.1/user=admin&pwd=x",
        "rtsp://127.0.0.1/?Token=1",
    ],
)
def test_no_credentials_stand_in_the_query_of_an_address(place, url):
    assert faults(place, changed(("rtsp://127.0.0.1/one", url))) == [
        "cameras[0].url: must not hold credentials; name a secret in 'password'"
    ]


def test_the_ports_of_served_cameras_are_not_the_gateways_own(place):
    (place / "secrets").mkdir(exist_ok=True)
    (place / "secrets" / "viewer").write_text("x")
    (place / "secrets" / "viewer").chmod(0o600)
    text = GOOD + '[rtsp]\nport = 8480\nusername = "viewer"\npassword = "viewer"\n'
    assert "rtsp.port: cameras are served on ports 8480 to 8480, and 8480 is the [api] port" in faults(place, text)
    cameras = "".join(f'[[cameras]]\nid = {300 + n}\nname = "C"\nurl = "rtsp://127.0.0.1/{n}"\n' for n in range(2, 25))
    at_the_port_before = text.replace("[rtsp]\nport = 8480", "[rtsp]\nport = 8479")
    assert faults(place, at_the_port_before + cameras) == []  # 24 share the first port
    twenty_fifth = '[[cameras]]\nid = 400\nname = "C"\nurl = "rtsp://127.0.0.1/x"\n'
    assert faults(place, at_the_port_before + cameras + twenty_fifth) == [
        "rtsp.port: cameras are served on ports 8479 to 8480, and 8480 is the [api] port"
    ]


def test_a_port_that_is_none_is_told(place):
    assert faults(place, changed(("rtsp://127.0.0.1/one", "rtsp://127.0.0.1:99999/one"))) == [
        "cameras[0].url: must have a port from 1 to 65535, if any"
    ]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"[site", "is not TOML: "),
        (b"\xff", "is not UTF-8 text; save it as that"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "is not TOML: a number is too long, or brackets are nested too deeply"),
        (b"a = " + b"9" * 5000, "is not TOML: a number is too long, or brackets are nested too deeply"),
    ],
    ids=["half a head", "no text", "deep", "long"],
)
def test_what_is_no_toml_is_one_fault(data, fault, tmp_path):
    path = tmp_path / "site.toml"
    path.write_bytes(data)
    with pytest.raises(SiteFaults) as caught:
        load(path)
    (found,) = caught.value.faults
    assert str(found).startswith(fault)


def test_a_mark_before_the_text_is_none_of_its_business(place):
    path = place / "site.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load(path, secrets=Secrets(folder=place / "secrets", environ=SECRETS)).site.name == "North"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            (("unit = 2", "unit = 999"), ("port = 8480", "port = -1")),
            ["api.port: must be at least 0", "devices[1].unit (device 102): must be at most 255"],
        ),
        ((("gate = 102", "gate = 101"),), ["lanes[1].gate (lane exit): 101 is already used by lane entry"]),
    ],
)
def test_people_are_told_which_record_is_meant(place, changes, told):
    path = place / "site.toml"
    path.write_text(changed(*changes))
    with pytest.raises(SiteFaults) as caught:
        load(path, secrets=Secrets(folder=place / "secrets", environ=SECRETS))
    assert sorted(caught.value.lines()) == told


def test_a_file_that_is_not_there_is_one_fault(tmp_path):
    with pytest.raises(SiteFaults) as caught:
        load(tmp_path / "none.toml")
    assert [str(fault) for fault in caught.value.faults] == ["cannot be read: No such file or directory"]


def test_the_sites_own_profiles_come_first(place):
    (place / "mine").mkdir()
    (place / "mine" / "barrier.toml").touch()
    raw = tomllib.loads(changed(('name = "North"', 'name = "North"\nprofiles = "mine"')))
    site = Site.model_validate(understood(raw))
    folders = profile_folders(site, place / "site.toml")
    assert find_profile("barrier", folders) == place / "mine" / "barrier.toml"
    assert check(site) == ()


VALUES = st.one_of(  # containers are made anew for each place: one shared by two places could come to hold itself
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.builds(list),
    st.builds(dict),
    st.builds(lambda: [{}]),
)


def spots(tree, here=()):
    """Every place in a tree of TOML."""
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, inner in steps:
        yield (*here, step)
        yield from spots(inner, (*here, step))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_written_it_is_judged(data):
    raw = tomllib.loads(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        *way, last = data.draw(st.sampled_from(list(spots(raw))))
        node = raw
        for step in way:
            node = node[step]
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "replace":
            node[last] = data.draw(VALUES)
        elif action == "delete":
            del node[last]
        elif isinstance(node, dict):
            node[data.draw(st.sampled_from(["extra", "modbus-gate", "id", "driver"]))] = data.draw(VALUES)
        if not raw:
            break
    before = copy.deepcopy(raw)
    try:
        check(Site.model_validate(understood(raw)))
    except ValidationError as error:
        told = list(faults_of(error))
        assert told
        assert all(fault.message for fault in told)
    assert repr(raw) == repr(before)
