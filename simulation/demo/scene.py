"""The demo's site: three lanes, each with another kind of gate and reader, and the cards and accounts to try."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from gateway.cli.users.register import made
from gateway.web.auth.accounts import hash_password
from gateway.web.register.changes import AddAccount, Look
from simulation.far_ends.central.accounts import CentralAccount, RoleForm
from simulation.far_ends.central.seed import card_number

ACCOUNT = "demo"
"""The account that signs in at the page. Its password is its name."""
MISCONFIGURED = 2
"""Exit status of a gateway whose site file or secrets are wrong."""
CARDS = 500
SITE_FOLDER = "site"
GATEWAY_FOLDER = "gateway"
_SECRETS: Mapping[str, str] = MappingProxyType(
    # The demo listens on loopback alone; these are the words that its documentation names.
    {"central-password": "demo", "camera-password": "demo"}
)
CAMERA_ACCOUNT = ("viewer", "demo")
MANAGER_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"  # noqa: S105 (of the demo)
PEOPLE = (
    CentralAccount(
        "guard",
        "demo",
        permissions=frozenset(
            {"can_view_devices", "can_control_devices", "can_view_events", "can_view_cameras", "can_view_camera_events"}
        ),
        role_name="Guard",
        role_form=RoleForm.FLAGS,
    ),
    CentralAccount("manager", "demo", role_name="Manager", mfa_secret=MANAGER_SECRET),
)
"""Accounts of the simulated central: a guard, who may do some things, and a manager with a second factor, who may
do everything. Try them at the site's page, and again while central is offline.
"""


@dataclass(frozen=True, slots=True)
class SceneLane:
    """A lane of the demo, with central's ids of its devices; 0 for no video camera."""

    lane_id: str
    name: str
    gate: int
    reader: int
    camera: int = 0


LANES = (
    SceneLane("entry", "North entry", 101, 102, 201),
    SceneLane("exit", "North exit", 103, 104, 202),
    SceneLane("south", "South entry", 106, 107),
)
EXIT_INPUTS = 105


@dataclass(frozen=True, slots=True)
class SceneCard:
    """A card as its reader sends it, with a label."""

    sent: str
    label: str


def _sent(index: int) -> str:
    facility, number = card_number(index)
    return f"{facility:03d},{number:05d}"


CARDS_SENT = tuple(_sent(index) for index in range(CARDS))
"""The text that a reader sends for each card of central's list."""
GOOD_CARDS = tuple(SceneCard(_sent(index), f"valid card {index + 1}") for index in range(6))
BAD_CARDS = (
    SceneCard(_sent(15), "suspended card"),
    SceneCard(_sent(11), "expired card"),
    SceneCard("255,65000", "unknown card"),
)


class FieldLines(BaseModel):
    """The addresses of the simulated devices."""

    model_config = ConfigDict(frozen=True)

    entry_modbus_port: int
    exit_bus_port: int
    south_barrier: str
    south_plates_port: int
    readers: dict[str, str]


class FieldReady(BaseModel):
    """The addresses that the simulated field prints once it is up."""

    model_config = ConfigDict(frozen=True)

    lines: FieldLines
    rtsp_port: int
    central_url: str
    control_url: str


def add_account(data: Path) -> None:
    """Put the account into the register of a data folder, which may be new, unless it is there."""
    if ACCOUNT not in {one.username for one in made(Look(), data, new=True).accounts}:
        change = AddAccount(username=ACCOUNT, password_hash=hash_password(ACCOUNT), role="administrator")
        made(change, data, new=True)


def write_site(folder: Path, ready: FieldReady, *, port: int) -> Path:
    """Write the site file and its secrets, and return the file's path."""
    secrets = folder / "secrets"
    secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, text in _SECRETS.items():
        file = secrets / name
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(text)
    path = folder / "site.toml"
    path.write_text(_site_text(ready, port=port), encoding="utf-8")
    return path


def _site_text(ready: FieldReady, *, port: int) -> str:
    parts = [
        f"""\
# Written anew by each start of the demo.
[site]
name = "Demo car park"
timezone = "America/Toronto"

[api]
host = "127.0.0.1"
port = {port}

[central]
url = "{ready.central_url}"
username = "gateway"
password = "central-password"
pull_seconds = 5
write_may_take_seconds = 1
ask_person_hours = 0.01

[storage]
media_gigabytes = 2
free_floor_gigabytes = 0.2
"""
    ]
    parts += [_links(ready), _devices(), *(_camera(ready.rtsp_port, lane) for lane in LANES if lane.camera), _lanes()]
    return "\n".join(parts)


def _links(ready: FieldReady) -> str:
    lines = ready.lines
    urls = {
        "entry-module": f"tcp://127.0.0.1:{lines.entry_modbus_port}",
        "entry-reader": lines.readers["entry"],
        "exit-bus": f"tcp://127.0.0.1:{lines.exit_bus_port}",
        "exit-reader": lines.readers["exit"],
        "south-barrier": lines.south_barrier,
        "south-camera": f"http://127.0.0.1:{lines.south_plates_port}",
    }
    return "\n".join(f'[[links]]\nid = "{name}"\nurl = "{url}"\n' for name, url in urls.items())


def _devices() -> str:
    entry, exit_, south = LANES
    return f"""\
[[devices]]
id = {entry.gate}
name = "{entry.name} barrier"
driver = "modbus-gate"
link = "entry-module"
profile = "relay-barrier"

[[devices]]
id = {entry.reader}
name = "{entry.name} reader"
driver = "serial-reader"
link = "entry-reader"
form = "wiegand26"

[[devices]]
id = {exit_.gate}
name = "{exit_.name} barrier"
driver = "modbus-gate"
link = "exit-bus"
framing = "rtu"
profile = "came-gard-ptx"
unit = 2

[[devices]]
id = {EXIT_INPUTS}
name = "{exit_.name} loops"
driver = "modbus-io"
link = "exit-bus"
framing = "rtu"
profile = "inputs-8"
unit = 3

[[devices]]
id = {exit_.reader}
name = "{exit_.name} reader"
driver = "serial-reader"
link = "exit-reader"
form = "wiegand26"

[[devices]]
id = {south.gate}
name = "{south.name} barrier"
driver = "serial-gate"
link = "south-barrier"
profile = "line-barrier"

[[devices]]
id = {south.reader}
name = "{south.name} plates"
driver = "hikvision-plates"
link = "south-camera"
username = "{CAMERA_ACCOUNT[0]}"
password = "camera-password"
"""


def _camera(rtsp_port: int, lane: SceneLane) -> str:
    return f"""\
[[cameras]]
id = {lane.camera}
name = "{lane.name} camera"
url = "rtsp://127.0.0.1:{rtsp_port}/{lane.lane_id}"
username = "{CAMERA_ACCOUNT[0]}"
password = "camera-password"
"""


def _lanes() -> str:
    entry, exit_, south = LANES
    return f"""\
[[areas]]
id = "car-park"
name = "Car park"
limit = 40

{_lane(entry, points=entry.gate)}
{_lane(exit_, points=EXIT_INPUTS, direction="exit")}
{_lane(south, points=south.gate)}"""


def _lane(lane: SceneLane, *, points: int, direction: str = "entry") -> str:
    return f"""\
[[lanes]]
id = "{lane.lane_id}"
name = "{lane.name}"
direction = "{direction}"
gate = {lane.gate}
readers = [{lane.reader}]
cameras = [{lane.camera or LANES[0].camera}]
closes = "gateway"
inside = "car-park"
inputs = [
    {{ role = "arming", device = {points}, point = "arming_loop" }},
    {{ role = "closing", device = {points}, point = "closing_loop" }},
    {{ role = "safety", device = {points}, point = "photocell" }},
]
"""
