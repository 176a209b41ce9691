"""The demo's site: two lanes with a barrier, a reader and a camera each, and the cards that people try there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from gateway.demo.central.seed import card_number

ACCOUNT = "demo"
CARDS = 500
SITE_FOLDER = "site"
GATEWAY_FOLDER = "gateway"
_SECRETS: Mapping[str, str] = MappingProxyType(
    # The demo listens on loopback alone; these are the words that its documentation names.
    {"demo-password": "demo", "central-password": "demo", "camera-password": "demo"}
)


@dataclass(frozen=True, slots=True)
class SceneLane:
    """A lane of the demo, with central's ids of what stands there."""

    lane_id: str
    name: str
    direction: str
    gate: int
    reader: int
    camera: int
    unit: int


LANES = (
    SceneLane("entry", "North entry", "entry", 101, 102, 201, 1),
    SceneLane("exit", "North exit", "exit", 103, 104, 202, 2),
)


@dataclass(frozen=True, slots=True)
class SceneCard:
    """What a reader sends for a card, and what to call it."""

    sent: str
    label: str


def _sent(index: int) -> str:
    facility, number = card_number(index)
    return f"{facility:03d},{number:05d}"


GOOD_CARDS = tuple(SceneCard(_sent(index), f"valid card {index + 1}") for index in range(6))
BAD_CARDS = (
    SceneCard(_sent(15), "suspended card"),
    SceneCard(_sent(11), "expired card"),
    SceneCard("255,65000", "unknown card"),
)


class FieldReady(BaseModel):
    """What the simulated field says once it is up: where everything can be reached."""

    model_config = ConfigDict(frozen=True)

    modbus_port: int
    rtsp_port: int
    readers: dict[str, str]
    central_url: str
    control_url: str


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

[[api.accounts]]
username = "{ACCOUNT}"
password = "demo-password"

[central]
url = "{ready.central_url}"
username = "gateway"
password = "central-password"
pull_seconds = 5

[storage]
media_gigabytes = 2
free_floor_gigabytes = 0.2

[demo]
control = "{ready.control_url}"

[[links]]
id = "barriers"
url = "tcp://127.0.0.1:{ready.modbus_port}"
"""
    ]
    parts.extend(_lane_text(lane, ready) for lane in LANES)
    return "\n".join(parts)


def _lane_text(lane: SceneLane, ready: FieldReady) -> str:
    return f"""\
[[links]]
id = "{lane.lane_id}-reader"
url = "{ready.readers[lane.lane_id]}"

[[devices]]
id = {lane.gate}
name = "{lane.name} barrier"
driver = "modbus-gate"
link = "barriers"
profile = "relay-barrier"
unit = {lane.unit}

[[devices]]
id = {lane.reader}
name = "{lane.name} reader"
driver = "serial-reader"
link = "{lane.lane_id}-reader"
form = "wiegand26"

[[cameras]]
id = {lane.camera}
name = "{lane.name} camera"
url = "rtsp://127.0.0.1:{ready.rtsp_port}/{lane.lane_id}"
username = "viewer"
password = "camera-password"

[[lanes]]
id = "{lane.lane_id}"
name = "{lane.name}"
direction = "{lane.direction}"
gate = {lane.gate}
readers = [{lane.reader}]
cameras = [{lane.camera}]
closes = "gateway"
arming = {{ device = {lane.gate}, point = "arming_loop" }}
closing = {{ device = {lane.gate}, point = "closing_loop" }}
safety = [{{ device = {lane.gate}, point = "photocell" }}]
"""
