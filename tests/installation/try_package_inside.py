"""Run in a booted Debian with the package installed and `init` done: connect a simulated field and try all of it.

`try-package` starts this: `everything` connects the field first, `kept` tries what an upgrade must keep, `settings`
changes the site file at the page. Prints a line for each thing that works; ends with status 1 at the first that does
not.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import pwd
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyotp
from trial_site import connect_field

from simulation.demo.scene import GOOD_CARDS, FieldReady

PORT = 8443
ACCOUNT = ("ada", "correct horse", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
MOST_EXPOSED = 1.5
TIME_SERVER = Path("/run/systemd/timesync/synchronized")
UNIT = "edge-gateway"
AUTHORITY = "/etc/edge-gateway/tls/authority.pem"
KEPT = Path("/var/lib/field-kept.json")
FIELD = Path("/var/lib/field")
FIELD_SAID, FIELD_LOG = FIELD / "said", FIELD / "log"
TOOLS = Path(__file__).resolve().parent  # the package `simulation` beside this file
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
    end, last = time.monotonic() + within, ""
    while time.monotonic() < end:
        try:
            if answer := what():
                print(f"ok: {why}", flush=True)
                return answer
        except urllib.error.HTTPError as error:
            last = f" ({error}: {error.read(4000).decode(errors='replace')})"
        except (OSError, KeyError, ValueError) as error:
            last = f" ({error})"
        time.sleep(0.2)  # asks again; it runs where the tests are not
    raise SystemExit(f"FAILED: {why}{last}\n{journal()}")


def shown(name: str) -> str:
    """A property of the unit."""
    return command("systemctl", "show", "--value", "-p", name, UNIT)


class Api:
    """The gateway's interface over HTTPS, signed in."""

    def __init__(self, session: str = "") -> None:
        self.session = session
        self._trusted = ssl.create_default_context(cafile=AUTHORITY)

    def ask(self, path: str, body: object = None) -> bytes:
        """Ask, with a body as POST."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"SessionID": self.session} if self.session else {}
        request = urllib.request.Request(f"https://127.0.0.1:{PORT}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=30, context=self._trusted) as answer:
            return answer.read()

    def sign_in(self) -> None:
        """Begin a session, with the second factor."""
        name, password, secret = ACCOUNT
        self.session = json.loads(self.ask("/v1/auth/login", {"username": name, "password": password}))["session"]
        self.ask("/v1/auth/mfa", {"token": pyotp.TOTP(secret).now()})

    def listed(self, path: str, name: str) -> list[dict[str, Any]]:
        """Return a list of the interface."""
        return json.loads(self.ask(path, {"page_limit": 50}))[name]


def start_field() -> FieldReady:
    """Start the simulated field as the gateway's user: its pseudo-terminals then belong to that user."""
    shutil.rmtree(FIELD, ignore_errors=True)
    FIELD.mkdir(parents=True)
    user = pwd.getpwnam(UNIT)
    os.chown(FIELD, user.pw_uid, user.pw_gid)
    words = [sys.executable, "-m", "simulation.demo.field", "--folder", str(FIELD), "--cards", "200", "--no-traffic"]
    # The field ends with its input, and here holds it open itself. It outlives this process, so it prints to a file: to
    # a pipe without a reader it could not.
    end, held = os.pipe()
    with FIELD_SAID.open("w") as said, FIELD_LOG.open("w") as log:
        subprocess.Popen(words, stdin=end, stdout=said, stderr=log, user=UNIT, group=UNIT, cwd=TOOLS, pass_fds=(held,))
    return until(lambda: FieldReady.model_validate_json(FIELD_SAID.read_text()), "the simulated field is up")


def set_up(ready: FieldReady) -> None:
    """Connect the field to the site, and allow the unit pseudo-terminals."""
    connect_field(ready)
    DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    if SERIAL.is_char_device():
        shutil.chown(SERIAL, group="dialout")
        SERIAL.chmod(0o660)
    if not TIME_SERVER.exists():  # this machine has none; as systemd-timesyncd does once it reaches one
        TIME_SERVER.parent.mkdir(parents=True, exist_ok=True)
        TIME_SERVER.touch()
    DROP_IN.write_text(f"{ALLOWED}ExecStartPre={sys.executable} {__file__} --sandboxed\n")
    command("systemctl", "daemon-reload")
    print(f"ok: {command('edge-gateway', 'check', '/etc/edge-gateway/site.toml').splitlines()[0]}")


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


def try_access(api: Api, control_url: str) -> None:
    """A card opens a gate, the passage is filmed, and a clip of it can be fetched."""
    known = {event["id"] for event in api.listed("/v1/camera/event/list", "events")}
    body = json.dumps({"lane_id": "entry", "card": GOOD_CARDS[len(known) % len(GOOD_CARDS)].sent}).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(f"{control_url}/present", data=body), timeout=10).close()
    except OSError as error:
        raise SystemExit(f"FAILED: the simulated field is gone: {error}\n{FIELD_LOG.read_text()[-2000:]}") from error
    filmed = lambda: [  # noqa: E731
        event for event in api.listed("/v1/camera/event/list", "events") if event["ready"] and event["id"] not in known
    ]
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


def try_units() -> None:
    """Let systemd judge the units as they are installed."""
    judged = command(
        "systemd-analyze", "security", "--offline=true", "--no-pager", f"/lib/systemd/system/{UNIT}.service"
    )
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", judged)
    assert found, judged
    assert float(found[1]) <= MOST_EXPOSED, judged
    words = ["systemd-analyze", "verify", "--man=no", f"{UNIT}.service", f"{UNIT}-clock.service"]
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", ""), said
    print(f"ok: exposure {found[1]}, verify is silent")


def try_doctor() -> None:
    """Ask `doctor` until it finds nothing."""
    good = lambda: subprocess.run(["edge-gateway", "doctor"], capture_output=True, check=False).returncode == 0  # noqa: E731
    try:
        until(good, "doctor finds nothing wrong")
    except SystemExit:
        print(subprocess.run(["edge-gateway", "doctor"], capture_output=True, text=True, check=False).stdout)
        raise


def events(api: Api) -> dict[str, object]:
    """Return what must be the same after an upgrade: the oldest events, the accounts and the site file."""
    listed = api.listed("/v1/camera/event/list", "events")
    oldest = min(listed, key=lambda event: event["id"])
    return {
        "event": oldest["id"],
        "clip": hashlib.sha256(api.ask(f"/v1/camera/event/clip/{oldest['id']}")).hexdigest(),
        "users": command("edge-gateway", "users", "list"),
        "site": Path("/etc/edge-gateway/site.toml").read_text(),
    }


def everything() -> None:
    """Try it all."""
    try_units()
    ready = start_field()
    set_up(ready)
    began = time.monotonic()
    command("systemctl", "restart", UNIT)
    print("ok: a serial port, libosdp and WebRTC work in the sandbox")
    print(f"ok: ready {time.monotonic() - began:.1f} s after systemctl start")
    api = Api()
    until(lambda: api.ask("/health/ready"), "health answers 200 over HTTPS: serial and Modbus lanes are under control")
    api.sign_in()
    print("ok: signed in with the second factor")
    conditions = lambda: [  # noqa: E731
        json.loads(api.ask(f"/v1/camera/status/{camera['id']}"))["status"]["condition"]
        for camera in api.listed("/v1/camera/list", "cameras")
    ]
    until(lambda: set(conditions()) == {"recording"}, "camera workers record")
    try_access(api, ready.control_url)
    try_doctor()
    pid = int(shown("MainPID"))
    try_sandbox(pid)
    command("systemctl", "reload", UNIT)
    print("ok: reload over the socket")
    watch = command("systemctl", "show", "--value", "-p", "ActiveState", "edge-gateway-clock")
    if watch != "active":
        raise SystemExit(f"FAILED: the clock's unit is {watch}\n{journal('edge-gateway-clock')}")
    print("ok: the clock's unit watches")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: int(shown("MainPID")) not in (0, pid), "the watchdog ended a gateway that stood still")
    kept = until(lambda: events(api), "and it serves again")
    KEPT.write_text(json.dumps({"session": api.session, "field": ready.control_url, "kept": kept}))
    KEPT.chmod(0o600)
    assert "Operation not permitted" not in journal(), journal()
    command("systemctl", "stop", UNIT)
    print(f"ok: stopped, result {shown('Result')}")
    assert shown("Result") == "success"
    command("systemctl", "start", UNIT)
    print("the unit works, hardened")


def kept() -> None:
    """See that everything is as it was before the package was changed, and that this package works as well."""
    try_units()
    before = json.loads(KEPT.read_text())
    api = Api(before["session"])
    now = until(lambda: events(api), "the gateway serves")
    assert now == before["kept"], (now, before)
    print("ok: events, footage, accounts, sessions and site file are as before")
    try_doctor()
    try_access(api, before["field"])
    try_sandbox(int(shown("MainPID")))


def settings() -> None:
    """Change the site file as the page does: the unit can write it, and not what lies beside it."""
    api = Api(json.loads(KEPT.read_text())["session"])
    file = json.loads(api.ask("/status/settings/file"))["settings"]
    edits = [{"section": "lanes", "id": "exit", "values": {"held_open_seconds": 75}}]
    api.ask("/status/settings/apply", {"digest": file["digest"], "edits": edits})
    api.ask("/status/settings/decide", {"keep": True})
    assert "held_open_seconds = 75" in Path("/etc/edge-gateway/site.toml").read_text()
    mounts = Path(f"/proc/{shown('MainPID')}/mountinfo").read_text().splitlines()
    writable = {line.split()[4] for line in mounts if "rw" in line.split()[5].split(",")}
    beside = {f"/etc/edge-gateway/{name}" for name in ("secrets", "tls", "profiles")}
    assert "/etc/edge-gateway" in writable, mounts
    assert not beside & writable, mounts
    print("ok: Settings wrote the site file; secrets, keys and profiles are read-only")


if __name__ == "__main__":
    if "--sandboxed" in sys.argv:
        try_in_sandbox()
    elif "kept" in sys.argv:
        kept()
    elif "settings" in sys.argv:
        settings()
    else:
        everything()
