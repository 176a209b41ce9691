"""The settings of a link as drivers take them, and on a real port."""

from __future__ import annotations

import errno

import pytest
import serial

from drivers.contract import LinkError
from drivers.link import open_link
from gateway.site import Link


@pytest.mark.parametrize("bits", [7, 8])
async def test_a_port_is_opened_with_the_data_bits_of_its_link(bits, monkeypatch, tmp_path):
    """A pseudo-terminal has 8 bits always, so the port is only asked for."""
    asked = {}

    def port(path, **settings):
        asked.update(settings, path=path)
        raise OSError(errno.ENODEV, "no port here")

    monkeypatch.setattr(serial, "Serial", port)
    (tmp_path / "port").touch()
    link = Link(id="reader", url=f"serial:{tmp_path}/port", parity="even", data_bits=bits)
    with pytest.raises(LinkError):
        await open_link(link.spec())
    assert (asked["bytesize"], asked["parity"]) == (bits, "E")


def test_what_a_link_says_of_its_devices_reaches_their_drivers():
    spec = Link(id="gate", url="tcp://10.0.0.2:502", pause_ms=80, transaction_numbers=False).spec()
    assert (spec.pause, spec.numbers_come_back) == (0.08, False)
    usual = Link(id="gate", url="tcp://10.0.0.2:502").spec()
    assert (usual.pause, usual.numbers_come_back, usual.data_bits) == (0.0, True, 8)
