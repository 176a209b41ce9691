"""The unit as shipped, judged by systemd itself."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lacks import lacks

SYSTEMD = Path(__file__).resolve().parents[1] / "systemd"
UNIT = SYSTEMD / "edge-gateway.service"


def tool(name):
    found = shutil.which(name)
    if found is None:
        lacks(f"{name} is missing (Debian: systemd)")
    return found


def values(key):
    return [line.split("=", 1)[1] for line in UNIT.read_text().splitlines() if line.startswith(f"{key}=")]


def verify(unit):
    return subprocess.run(
        [tool("systemd-analyze"), "verify", "--man=no", unit], capture_output=True, text=True, timeout=50, check=False
    )


def with_program_of_this_checkout(folder):
    program = folder / "program"  # systemd takes no quotes in a program's path, and a checkout may have them
    program.symlink_to(Path(sys.executable).with_name("edge-gateway"))
    copy = folder / UNIT.name
    text = UNIT.read_text()
    assert "ExecStart=/usr/bin/edge-gateway " in text
    copy.write_text(text.replace("/usr/bin/edge-gateway", str(program)))
    return copy


@pytest.mark.long("systemd's own judge of units")
def test_systemd_accepts_the_unit_silently(tmp_path):
    result = verify(with_program_of_this_checkout(tmp_path))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.long("systemd's own judge of units")
@pytest.mark.parametrize(
    ("unit", "drop_in", "most"),
    [
        ("edge-gateway.service", "", 1.5),
        ("edge-gateway-clock.service", "", 0.5),
        ("edge-gateway-backup.service", "", 1.5),
        ("edge-gateway-backup.service", "edge-gateway-backup-elsewhere.conf", 2.2),
    ],
)
def test_the_units_are_exposed_little(unit, drop_in, most, tmp_path):
    whole = tmp_path / unit
    whole.write_text((SYSTEMD / unit).read_text() + ((SYSTEMD / drop_in).read_text() if drop_in else ""))
    words = [tool("systemd-analyze"), "security", "--offline=true", "--no-pager", whole]
    judged = subprocess.run(words, capture_output=True, text=True, timeout=50, check=True).stdout
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", judged)
    assert found, judged
    assert float(found[1]) <= most


@pytest.mark.long("systemd's own judge of units")
def test_systemd_would_have_named_a_fault(tmp_path):
    unit = with_program_of_this_checkout(tmp_path)
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchDogSecs="))
    assert "WatchDogSecs" in verify(unit).stderr


def test_the_unit_restarts_for_ever_and_is_watched():
    assert values("Type") == ["notify"]
    assert values("NotifyAccess") == ["main"]
    assert values("Restart") == ["always"]
    assert values("StartLimitIntervalSec") == ["0"]
    assert values("WatchdogSec") == ["20"]
    assert values("User") == ["edge-gateway"]
    assert values("StateDirectory") == ["edge-gateway"]


def test_a_process_that_runs_wild_takes_neither_the_box_nor_the_lanes_along():
    assert values("OOMPolicy") == ["continue"]
    assert (values("MemoryHigh"), values("MemoryMax"), values("TasksMax")) == (["70%"], ["80%"], ["1024"])
    assert values("Nice") == ["-5"]
    assert "setpriority" in values("SystemCallFilter")


@pytest.mark.parametrize(("program", "file"), [("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")])
def test_systemd_makes_the_user_and_the_folders(program, file, tmp_path):
    (tmp_path / "etc").mkdir()
    options = ["--create"] if file == "tmpfiles" else []
    sysusers = [tool("systemd-sysusers"), f"--root={tmp_path}", SYSTEMD / "edge-gateway.sysusers"]
    asked = [tool(program), *options, f"--root={tmp_path}", SYSTEMD / f"edge-gateway.{file}"]
    if os.geteuid() != 0:
        pytest.skip("only root may give folders to another user")
    subprocess.run(sysusers, check=True, capture_output=True, timeout=30)
    result = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=30)
    assert result.returncode == 0, result.stderr
    assert "edge-gateway:" in (tmp_path / "etc/passwd").read_text()
    if file == "tmpfiles":
        assert (tmp_path / "etc/edge-gateway/secrets").stat().st_mode & 0o777 == 0o700


def test_as_many_datagrams_may_wait_as_the_cameras_readers_ask_for():
    (value,) = re.findall(r"^net\.core\.rmem_max = (\d+)$", (SYSTEMD / "edge-gateway.sysctl").read_text(), re.MULTILINE)
    drivers = SYSTEMD.parent / "drivers"
    asked = [
        int(number.replace("_", ""))
        for name in ("rtsp/client/udp_ports.py", "webrtc/connection.py")
        for number in re.findall(r"^_RECEIVE_BUFFER = ([\d_]+)$", (drivers / name).read_text(), re.MULTILINE)
    ]
    assert len(asked) == 2
    assert int(value) >= max(asked)
