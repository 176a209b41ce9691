"""The one line that says what a good site holds."""

from gateway.cli.check import summary
from gateway.site import Site, load, unproven


def test_each_kind_is_counted():
    point = {"device": 1, "point": "x"}
    site = Site.model_validate(
        {
            "site": {"name": "North"},
            "api": {"accounts": [{"username": "u", "password": "p"}]},
            "central": {"url": "https://central.example.com/", "username": "gw", "password": "central"},
            "links": [{"id": "a", "url": "tcp://a:1"}, {"id": "b", "url": "serial:/dev/b"}],
            "devices": [
                {"id": 1, "name": "g", "driver": "modbus-gate", "link": "a", "profile": "p"},
                {"id": 2, "name": "r", "driver": "serial-reader", "link": "b"},
            ],
            "lanes": [{"id": "l", "name": "l", "gate": 1, "arming": point, "closing": point}],
        }
    )
    assert summary(site) == (
        "North with 1 lane, 1 gate, 1 reader, 0 cameras, 2 links; central at https://central.example.com"
    )


def test_what_was_never_seen_on_a_device_is_noted(tmp_path):
    path = tmp_path / "site.toml"
    device = '[[devices]]\nid = {}\nname = "Gate {}"\ndriver = "modbus-gate"\nlink = "bus"\nprofile = "{}"\nunit = {}\n'
    path.write_text(
        '[site]\nname = "North"\n[[links]]\nid = "bus"\nurl = "serial:/dev/ttyUSB0"\nbaud = 38400\nparity = "even"\n'
        + "".join(
            device.format(number, number, profile, number)
            for number, profile in ((1, "came-gard-ptx"), (2, "came-gard-ptx"), (3, "relay-barrier"))
        ).replace('profile = "', 'framing = "rtu"\nprofile = "')
    )
    (note,) = unproven(load(path), path)
    assert note.startswith("profile came-gard-ptx: the output numbers come from the register map alone")
