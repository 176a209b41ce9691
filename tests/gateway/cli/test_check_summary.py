"""The one line that says what a good site holds."""

import pytest

from gateway.cli.check import summary, warnings
from gateway.site import Site, load, unproven


def test_each_kind_is_counted():
    inputs = [{"role": role, "device": 1, "point": "x"} for role in ("arming", "closing")]
    site = Site.model_validate(
        {
            "site": {"name": "North"},
            "central": {"url": "https://central.example.com/", "username": "gw", "password": "central"},
            "links": [{"id": "a", "url": "tcp://a:1"}, {"id": "b", "url": "serial:/dev/b"}],
            "devices": [
                {"id": 1, "name": "g", "driver": "modbus-gate", "link": "a", "profile": "p"},
                {"id": 2, "name": "r", "driver": "serial-reader", "link": "b"},
            ],
            "lanes": [{"id": "l", "name": "l", "gate": 1, "inputs": inputs}],
        }
    )
    assert summary(site) == (
        "North with 1 lane, 1 gate, 1 reader, 0 cameras, 2 links; central at https://central.example.com"
    )


@pytest.mark.parametrize(
    ("accounts", "words"),
    [(("guard",), ""), ((), "; nobody can sign in: see"), (None, "")],
)
def test_accounts_of_the_register_count(accounts, words):
    site = Site.model_validate({"site": {"name": "North"}})
    told = summary(site, accounts=accounts)
    assert told.partition("; no central service")[2] == (words and f"{words} edge-gateway users")


@pytest.mark.parametrize(
    ("account", "accounts", "is_told"),
    [
        ("operator", ("guard",), True),
        ("operator", ("guard", "operator"), False),
        ("operator", None, False),
    ],
)
def test_a_sender_whose_account_is_nowhere_is_told(tmp_path, account, accounts, is_told):
    site = Site.model_validate(
        {
            "site": {"name": "North"},
            "fleet": {
                "urls": ["nats://127.0.0.1:4222"],
                "site": "north",
                "gateway": "gate-1",
                "credentials": "fleet",
                "senders": [{"key": "UCBAYD5ZQ2ZED3Z7GYBXSRESAVAGGUNFRUKYFHV4YLTI3CJB5L3NIX3D", "account": account}],
            },
        }
    )
    (tmp_path / "site.toml").touch()
    told = [one for one in warnings(site, tmp_path / "site.toml", accounts) if "fleet.senders" in one]
    assert bool(told) is is_told
    assert all(one.startswith("fleet.senders[0].account: there is no account 'operator'") for one in told)


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


def test_a_close_that_hangs_on_this_gateways_life_is_noted(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(
        """
        site = { name = "North" }
        links = [{ id = "a", url = "tcp://127.0.0.1:1" }, { id = "b", url = "tcp://127.0.0.1:2" }]
        devices = [
          { id = 1, name = "G", driver = "modbus-gate", link = "a", profile = "relay-and-inputs" },
          { id = 2, name = "H", driver = "modbus-gate", link = "b", profile = "relay-barrier" },
          { id = 3, name = "I", driver = "modbus-io", link = "b", profile = "wago-750", unit = 2 },
        ]
        """
    )
    notes = [note for note in unproven(load(path), path) if "pulse" in note]
    assert [note.partition(":")[0] for note in notes] == ["profile relay-and-inputs"]
    assert "stays on until the gateway is back" in notes[0]
