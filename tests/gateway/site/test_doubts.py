"""Warnings for a probable slip in a sound site file, with its place, and none for anything else."""

from __future__ import annotations

import pytest

from gateway.site import doubtful, load

SITE = """
[site]
name = "A"
[[links]]
id = "bus"
url = "serial:/dev/serial/by-id/usb-adapter"
baud = 38400
parity = "even"
[[devices]]
id = 101
name = "Barrier"
driver = "modbus-gate"
framing = "rtu"
link = "bus"
profile = "came-gard-ptx"
[[devices]]
id = 102
name = "Loops"
driver = "modbus-io"
framing = "rtu"
link = "bus"
profile = "inputs-8"
unit = 2
[[schedules]]
id = "day"
windows = [{ days = ["mon"], start = "06:00", end = "18:00" }, { days = ["tue"], start = "00:00", end = "24:00" }]
[[lanes]]
id = "in"
name = "In"
gate = 101
inputs = [
    { role = "arming", device = 102, point = "arming_loop" },
    { role = "closing", device = 102, point = "closing_loop" },
    { role = "safety", device = 102, point = "photocell" },
]
"""
SECOND = """
[[devices]]
id = 103
name = "Barrier"
driver = "modbus-gate"
framing = "rtu"
link = "bus"
profile = "came-gard-ptx"
unit = 3
[[lanes]]
id = "out"
name = "Out"
gate = 103
inputs = [
    { role = "arming", device = 102, point = "arming_loop" },
    { role = "closing", device = 102, point = "input_8" },
]
"""
CENTRAL = """
[central]
url = "{}"
username = "u"
password = "p"
"""


MAKER_SAYS = (
    "links[0] (link bus): is set to 9600 8N1, but the maker sets device 101 (came-gard-ptx) to 38400 8E1:"
    ' write baud = 38400, parity = "even", stop_bits = 1, unless the device was changed'
)


def said(tmp_path, monkeypatch, text):
    monkeypatch.setenv("EDGE_GATEWAY_SECRET_P", "x")
    path = tmp_path / "site.toml"
    path.write_text(text)
    return list(doubtful(load(path), path))


def test_a_good_site_raises_no_doubt(tmp_path, monkeypatch):
    assert said(tmp_path, monkeypatch, SITE) == []
    for url in ("https://central.example.com", "http://127.0.0.1:8490", "http://localhost:8490"):
        assert said(tmp_path, monkeypatch, SITE + CENTRAL.format(url)) == []


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        (
            'baud = 38400\nparity = "even"',
            "",
            MAKER_SAYS,
        ),
        (
            "/dev/serial/by-id/usb-adapter",
            "/dev/ttyUSB0",
            (
                "links[0].url (link bus): /dev/ttyUSB0 may name another adapter after a restart;"
                " use its name under /dev/serial/by-id/…"
            ),
        ),
        (
            'point = "photocell"',
            'point = "closing_loop"',
            "lanes[0].inputs[2] (lane in): is the closing loop, a safety point anyway; did you mean a photocell?",
        ),
        (
            'end = "18:00"',
            'end = "06:00"',
            "schedules[0].windows[0] (schedule day): from 06:00 to 06:00 is 24 hours, until 06:00 of the next day",
        ),
        (
            "[[schedules]]",
            SECOND + "[[schedules]]",
            "lanes[1] (lane in): device 102's 'arming_loop' arms lane out too: a vehicle on it waits in both lanes",
        ),
        (
            "[[schedules]]",
            CENTRAL.format("http://central.example.com") + "[[schedules]]",
            "central.url: passwords and cards go to central unencrypted; write https:// if central has it",
        ),
        (
            "[[schedules]]",
            CENTRAL.format("https://central.example.com") + 'ca_file = "/no/where"\n[[schedules]]',
            "central.ca_file: /no/where: No such file or directory; until this is fixed there is no line to central",
        ),
    ],
)
def test_a_doubt_is_told_with_its_place(tmp_path, monkeypatch, old, new, doubt):
    assert said(tmp_path, monkeypatch, SITE.replace(old, new)) == [doubt]


@pytest.mark.parametrize(("units", "is_told"), [((1, 255), True), ((0, 7), True), ((1, 2), False)])
def test_gates_by_one_address_of_which_one_is_the_device_itself(tmp_path, monkeypatch, units, is_told):
    text = SITE.replace("serial:/dev/serial/by-id/usb-adapter", "tcp://192.0.2.10:502")
    text = text.replace('baud = 38400\nparity = "even"', "").replace("unit = 2", "unit = 9")
    second = SECOND[: SECOND.index("[[lanes]]")].replace("unit = 3", f"unit = {units[1]}")
    text = text.replace("id = 101\n", f"id = 101\nunit = {units[0]}\n").replace(
        "[[schedules]]", second + "[[schedules]]"
    )
    text = text.replace('framing = "rtu"', 'framing = "tcp"')
    doubt = (
        f"devices[2].unit (device 103): {units[1]} writes the same output as device 101 with unit {units[0]}:"
        " a device that ignores the unit moves for both; give each gate an output of its own, or remove one of them"
    )
    assert said(tmp_path, monkeypatch, text) == ([doubt] if is_told else [])


def test_a_speed_that_no_device_has(tmp_path, monkeypatch):
    doubts = said(tmp_path, monkeypatch, SITE.replace("38400", "9601"))
    assert doubts[0] == "links[0].baud (link bus): 9601 is not a usual speed; did you mean 9600?"


def test_site_without_lanes_is_told(tmp_path, monkeypatch):
    (doubt,) = said(tmp_path, monkeypatch, '[site]\nname = "Bare"\n')
    assert str(doubt) == "lanes: the file has no lanes, so no gate opens; add [[lanes]]"
