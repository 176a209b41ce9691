"""Imports of the daemon before its lanes are under control."""

from __future__ import annotations

import subprocess
import sys

LATER = ("gateway.web", "gateway.fleet", "gateway.mqtt", "gateway.central", "gateway.recording", "gateway.webhooks")
LATER += ("gateway.problems", "gateway.backup", "gateway.support", "aiohttp", "cryptography", "argon2")
LATER += ("xlsxwriter", "nats", "paramiko", "botocore", "av")
FAMILIES = ("drivers.modbus.gate", "drivers.osdp.line", "drivers.osdp.reader", "drivers.serial_line.gate")
FAMILIES += ("drivers.serial_line.reader", "drivers.plates.stream", "drivers.plates.pushed", "drivers.plates.listener")
FAMILIES += ("drivers.hikvision.barrier", "drivers.http_session")


def test_lanes_start_without_the_services_and_the_drivers_of_other_sites():
    words = "import sys, gateway.app.gateway; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True).stdout.split()
    assert "gateway.lanes" in loaded
    assert sorted({*LATER, *FAMILIES} & set(loaded)) == []
