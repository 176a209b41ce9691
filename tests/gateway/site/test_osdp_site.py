"""OSDP readers in a site file: addresses and keys, every fault with its place."""

import pytest

from drivers.osdp.reader import OsdpReader
from drivers.osdp.section import key_of
from gateway.app.devices import build_field
from gateway.runtime.clock import SystemClock
from gateway.site import Secrets, SiteFaults, load

KEY = "000102030405060708090a0b0c0d0e0f"
SITE = """
[site]
name = "North"
[[links]]
id = "osdp"
url = "serial:/dev/ttyUSB1"
"""


def reader(number, address, key="reader-key"):
    return f"""
[[devices]]
id = {number}
name = "Reader {number}"
driver = "osdp-reader"
link = "osdp"
address = {address}
key = "{key}"
"""


def faults_of_site(tmp_path, text, *, key=KEY, **options):
    path = tmp_path / "site.toml"
    path.write_text(text)
    environ = {"EDGE_GATEWAY_SECRET_READER_KEY": key} if key else {}
    try:
        load(path, secrets=Secrets(folder=tmp_path / "secrets", environ=environ), **options)
    except SiteFaults as error:
        return {fault.place: fault.message for fault in error.faults}
    return {}


def test_several_readers_share_a_line(tmp_path):
    assert faults_of_site(tmp_path, SITE + reader(201, 0) + reader(202, 1)) == {}


def test_they_share_one_line_as_drivers_too(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE + reader(201, 0) + reader(202, 1))
    secrets = Secrets(folder=tmp_path / "secrets", environ={"EDGE_GATEWAY_SECRET_READER_KEY": KEY})
    field = build_field(load(path, secrets=secrets), site_path=path, secrets=secrets, clock=SystemClock())
    assert list(field.lines) == ["osdp"]
    assert [driver.device_id for driver in field.drivers] == [201, 202]
    assert all(isinstance(driver, OsdpReader) for driver in field.drivers)


def test_readers_with_lamps_are_shown_to_the_lanes_and_others_are_not(tmp_path):
    path = tmp_path / "site.toml"
    plain = '[[devices]]\nid = 9\nname = "Plain"\ndriver = "serial-reader"\nlink = "plain"\n'
    path.write_text(SITE + reader(201, 0) + '[[links]]\nid = "plain"\nurl = "serial:/dev/ttyUSB2"\n' + plain)
    secrets = Secrets(folder=tmp_path / "secrets", environ={"EDGE_GATEWAY_SECRET_READER_KEY": KEY})
    field = build_field(load(path, secrets=secrets), site_path=path, secrets=secrets, clock=SystemClock())
    assert {driver.device_id for driver in field.drivers} == {9, 201}
    assert list(field.showing) == [201]


def test_an_address_twice(tmp_path):
    faults = faults_of_site(tmp_path, SITE + reader(201, 1) + reader(202, 1))
    assert faults == {"devices[1].address": "1 on 'osdp' is already used by devices[0]"}


def test_more_readers_than_a_line_takes(tmp_path):
    faults = faults_of_site(tmp_path, SITE + "".join(reader(201 + number, number) for number in range(34)))
    assert faults == {"devices[32].link": "'osdp' has more than 32 devices"}


def test_another_family_on_the_same_line(tmp_path):
    other = '[[devices]]\nid = 9\nname = "Old"\ndriver = "serial-reader"\nlink = "osdp"\n'
    faults = faults_of_site(tmp_path, SITE + reader(201, 1) + other)
    assert faults == {"devices[1].link": "'osdp' is already used by devices[0]"}


@pytest.mark.parametrize("setting", ['parity = "even"', "data_bits = 7"])
def test_characters_that_osdp_does_not_have(tmp_path, setting):
    faults = faults_of_site(tmp_path, SITE + setting + "\n" + reader(201, 1))
    assert list(faults) == ["devices[0].link"]


def test_no_key(tmp_path):
    faults = faults_of_site(tmp_path, SITE + reader(201, 1), key=None)
    assert list(faults) == ["devices[0].key"]
    assert "edge-gateway osdp provision" in faults["devices[0].key"]
    assert faults_of_site(tmp_path, SITE + reader(201, 1), key=None, reader_keys=False) == {}


@pytest.mark.parametrize("key", ["short", KEY + "00", "x" * 32, bytes(range(0x30, 0x40)).hex()])
def test_a_key_that_is_none_is_not_repeated(tmp_path, key):
    faults = faults_of_site(tmp_path, SITE + reader(201, 1), key=key)
    assert list(faults) == ["devices[0].key"]
    assert key not in faults["devices[0].key"]
    with pytest.raises(ValueError, match=r"must be 32|every new reader"):
        key_of(key)


def test_a_key():
    assert key_of(KEY.upper()) == bytes(range(16))
