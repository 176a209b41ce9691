"""Discovery against far ends of real sockets: a WS-Discovery responder and an mDNS one, on loopback multicast."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import until
from ws_responder import MATCH, responder

from drivers.discovery import OnvifCamera, camera_of, onvif_cameras
from gateway.cli.discover import SerialPort, serial_ports

LOOPBACK = "127.0.0.1"


async def test_cameras_answer_a_probe():
    async with responder() as (group, port, asked):
        found = await onvif_cameras([LOOPBACK], seconds=0.5, group=group, port=port)
    assert found == (OnvifCamera("192.168.1.20", "http://192.168.1.20/onvif/device_service", "Yard camera", "P3245"),)
    assert len(asked) == 2
    assert b"NetworkVideoTransmitter" in asked[0]


async def test_nobody_there_is_no_answer():
    assert await onvif_cameras([LOOPBACK], seconds=0.1, group="239.255.255.251", port=3799) == ()
    assert await onvif_cameras(["192.0.2.77"], seconds=0.1) == ()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<a/>",
        MATCH.format(message="urn:uuid:other", service="http://10.0.0.1/x").encode(),
        MATCH.format(message="m", service="").encode(),
        MATCH.format(message="m", service="ftp://10.0.0.1/x http://[bad/").encode(),
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + MATCH.format(message="m", service="http://10.0.0.1/x").encode(),
    ],
    ids=["empty", "no-soap", "other-probe", "no-address", "bad-address", "doctype"],
)
def test_what_is_no_answer(answer):
    assert camera_of(answer, message="m") is None


@given(st.binary(max_size=300))
def test_any_bytes_are_passed_over(data):
    assert camera_of(data, message="m") is None


def test_serial_ports_by_id(tmp_path):
    assert serial_ports(tmp_path / "none") == ()
    (tmp_path / "by-id").mkdir()
    (tmp_path / "ttyUSB0").touch()
    link = tmp_path / "by-id" / "usb-FTDI_A-if00"
    link.symlink_to(tmp_path / "ttyUSB0")
    assert serial_ports(tmp_path / "by-id") == (SerialPort(str(link), str(tmp_path / "ttyUSB0")),)


@asynccontextmanager
async def announcing(name, kind, port):
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

    async with AsyncZeroconf(interfaces=[LOOPBACK]) as network:
        info = AsyncServiceInfo(
            kind, f"{name}.{kind}", port=port, addresses=[socket.inet_aton("192.168.1.21")], server="yard-cam.local."
        )
        await network.async_register_service(info, cooperating_responders=True)  # asks nobody for the name first
        yield


async def test_what_mdns_announces():
    from drivers.discovery import Announced, announced

    async with announcing("Yard camera", "_rtsp._tcp.local.", 554):

        async def found():
            return Announced("rtsp", "Yard camera", "192.168.1.21", 554) in await announced([LOOPBACK], seconds=0.3)

        assert await until(found)
    assert await announced([], seconds=5) == ()
