"""Run in a booted Debian with the gateway installed: start its unit on a simulated field and try all of it.

`try-unit` starts this. Prints a line for each thing that works; ends with status 1 at the first that does not.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.demo.scene import GOOD_CARDS, FieldReady, write_site

PORT = 8480
UNIT = "edge-gateway"
SITE = Path("/etc/edge-gateway")
FIELD = Path("/var/lib/field")
SERIAL = Path("/dev/ttyS0")
DROP_IN = Path("/etc/systemd/system/edge-gateway.service.d/field.conf")
# The simulated serial lines are pseudo-terminals, which the shipped unit has no use for.
ALLOWED = "[Service]\nDeviceAllow=char-pts rw\n"


def command(*words: str) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise SystemExit(f"FAILED: {' '.join(words)}: {done.stderr or done.stdout}\n{journal()}")
    return done.stdout.strip()


def journal(unit: str = UNIT) -> str:
    """Return the last lines of a unit's log."""
    words = ["journalctl", "-u", unit, "-n", "40", "--no-pager", "-o", "cat"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30).stdout


def until(what: Callable[[], Any], why: str, within: float = 60) -> Any:
    """Ask until the answer is true; a refusal counts as no answer yet."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            if answer := what():
                print(f"ok: {why}", flush=True)
                return answer
        except (OSError, KeyError, ValueError):
            pass
        time.sleep(0.2)
    raise SystemExit(f"FAILED: {why}\n{journal()}")


def shown(name: str) -> str:
    """A property of the unit."""
    return command("systemctl", "show", "--value", "-p", name, UNIT)


class Api:
    """The gateway's interface, signed in."""

    def __init__(self) -> None:
        self.session = ""

    def ask(self, path: str, body: object = None) -> bytes:
        """Ask, with a body as POST."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"SessionID": self.session} if self.session else {}
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def sign_in(self) -> bool:
        """Begin a session."""
        self.session = ""
        self.session = json.loads(self.ask("/v1/auth/login", {"username": "demo", "password": "demo"}))["session"]
        return True

    def listed(self, path: str, name: str) -> list[dict[str, Any]]:
        """Return a list of the interface."""
        return json.loads(self.ask(path, {"page_limit": 50}))[name]


def start_field() -> tuple[subprocess.Popen[str], FieldReady]:
    """Start the simulated field as the gateway's user: its pseudo-terminals then belong to that user."""
    shutil.rmtree(FIELD, ignore_errors=True)
    FIELD.mkdir(parents=True)
    user = pwd.getpwnam(UNIT)
    os.chown(FIELD, user.pw_uid, user.pw_gid)
    words = [sys.executable, "-m", "gateway.demo.field", "--folder", str(FIELD), "--cards", "200", "--no-traffic"]
    field = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=UNIT, group=UNIT, cwd="/"
    )
    assert field.stdout is not None
    return field, FieldReady.model_validate_json(field.stdout.readline())


def set_up(ready: FieldReady) -> None:
    """Write the site file and its secrets as an installer would, and the allowance for pseudo-terminals."""
    write_site(SITE, ready, port=PORT)
    for path in (SITE / "site.toml", SITE / "secrets", *(SITE / "secrets").iterdir()):
        shutil.chown(path, UNIT, UNIT)
    DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    if SERIAL.is_char_device():
        shutil.chown(SERIAL, group="dialout")
        SERIAL.chmod(0o660)
    DROP_IN.write_text(f"{ALLOWED}ExecStartPre={sys.executable} {__file__} --sandboxed\n")
    command("systemctl", "daemon-reload")


def try_in_sandbox() -> None:
    """Use a serial port, libosdp and WebRTC with the unit's own rights; a refusal keeps the unit from starting."""
    if SERIAL.is_char_device():
        os.close(os.open(SERIAL, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
    importlib.import_module("osdp")
    asyncio.run(connect_peers())


async def connect_peers() -> None:
    """Connect two WebRTC peers: ICE asks for this machine's addresses, DTLS makes keys and certificates."""
    aiortc = importlib.import_module("aiortc")
    one, other = aiortc.RTCPeerConnection(), aiortc.RTCPeerConnection()
    opened = asyncio.Event()
    channel = one.createDataChannel("sandbox")
    channel.on("open", opened.set)
    await one.setLocalDescription(await one.createOffer())
    await other.setRemoteDescription(one.localDescription)
    await other.setLocalDescription(await other.createAnswer())
    await one.setRemoteDescription(other.localDescription)
    await asyncio.wait_for(opened.wait(), 20)
    await one.close()
    await other.close()


def try_access(api: Api, ready: FieldReady) -> None:
    """A card opens a gate, the passage is filmed, and a clip of it can be fetched."""
    body = json.dumps({"lane_id": "entry", "card": GOOD_CARDS[0].sent}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{ready.control_url}/present", data=body), timeout=10).close()
    filmed = lambda: [event for event in api.listed("/v1/camera/event/list", "events") if event["ready"]]  # noqa: E731
    event = until(filmed, "a card opened the gate and the passage is on film")[0]
    until(lambda: api.ask(f"/v1/camera/event/clip/{event['id']}")[4:8] == b"ftyp", "a cutter made its clip")


def try_sandbox(pid: int) -> None:
    """Return what the kernel says of the process."""
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert status["Seccomp"] == "2", status
    assert status["NoNewPrivs"] == "1", status
    assert int(status["CapBnd"], 16) == 0, status
    print(f"ok: seccomp, no new privileges, no capability; niceness {os.getpriority(os.PRIO_PROCESS, pid)}")
    children = [int(p) for p in command("pgrep", "-P", str(pid)).split()]
    assert all(os.getpriority(os.PRIO_PROCESS, child) >= 0 for child in children), "a child runs before the lanes"
    print(f"ok: {len(children)} children at the ordinary niceness")
    modes = {path.name: path.stat().st_mode & 0o777 for path in Path("/var/lib/edge-gateway").glob("*.db*")}
    assert modes
    assert all(not mode & 0o027 for mode in modes.values()), modes
    print(f"ok: databases {sorted({oct(mode) for mode in modes.values()})}")


def main() -> None:
    """Try it all."""
    field, ready = start_field()
    set_up(ready)
    command("systemctl", "reset-failed")
    began = time.monotonic()
    command("systemctl", "restart", UNIT)
    print("ok: a serial port, libosdp and WebRTC work in the sandbox")
    print(f"ok: ready {time.monotonic() - began:.1f} s after systemctl start")
    api = Api()
    until(lambda: api.ask("/health/ready"), "health answers 200: serial and Modbus lanes are under control")
    api.sign_in()
    conditions = lambda: [  # noqa: E731
        json.loads(api.ask(f"/v1/camera/status/{camera['id']}"))["status"]["condition"]
        for camera in api.listed("/v1/camera/list", "cameras")
    ]
    until(lambda: set(conditions()) == {"recording"}, "camera workers record")
    try_access(api, ready)
    pid = int(shown("MainPID"))
    try_sandbox(pid)
    command("systemctl", "reload", UNIT)
    print("ok: reload over the socket")
    watch = command("systemctl", "show", "--value", "-p", "ActiveState", "edge-gateway-clock")
    if watch != "active":
        raise SystemExit(f"FAILED: the clock's unit is {watch}\n{journal('edge-gateway-clock')}")
    trusted = Path("/run/edge-gateway-clock/synchronized").exists()
    print(f"ok: the clock's unit watches; the clock is {'synchronised' if trusted else 'not synchronised'}")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: int(shown("MainPID")) not in (0, pid), "the watchdog ended a gateway that stood still")
    until(api.sign_in, "and it serves again")
    assert "Operation not permitted" not in journal(), journal()
    command("systemctl", "stop", UNIT)
    print(f"ok: stopped, result {shown('Result')}")
    assert shown("Result") == "success"
    field.kill()
    print("the unit works, hardened")


if __name__ == "__main__":
    if "--sandboxed" in sys.argv:
        try_in_sandbox()
    else:
        main()
