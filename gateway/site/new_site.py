"""The text of a new site file: an installer's answers, with comments for the next steps."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.site.formats import FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCentral:
    """The account of the gateway at central."""

    url: str
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSite:
    """The answers of an installer.

    `host` is the address to listen on. `certificate` and `key` are paths as they are written into the file. `found` is
    TOML for the devices and cameras that a search has found; it is written as comments.
    """

    name: str
    timezone: str
    host: str
    host_names: tuple[str, ...]
    port: int
    certificate: str
    key: str
    central: NewCentral | None = None
    found: str = ""


def site_text(new: NewSite) -> str:
    """Return the text of a valid site file without lanes, with examples as comments."""
    parts = [_HEAD, _site(new), _api(new), _central(new.central), _STORAGE, _found(new.found), _LANES]
    return "\n".join(parts)


_HEAD = f"""\
# The site of this gateway. After a change:
#   edge-gateway check /etc/edge-gateway/site.toml && edge-gateway reload
# `check` lists every fault with its place. /usr/share/doc/edge-gateway/examples/site.example.toml explains every
# setting. Secrets are named here, and are files of mode 0600 in the folder secrets/ beside this file.
format = {FORMAT}
"""

_STORAGE = """\
[storage]
media_gigabytes = 20                # above this, the oldest footage without an event is deleted
free_floor_gigabytes = 1            # below this free space, likewise
"""

_LINES = """\
# Lines to devices, and cameras. `edge-gateway discover` finds some.
# [[links]]
# id = "barrier"
# url = "tcp://192.0.2.10:502"        # or serial:/dev/serial/by-id/…
#
# [[cameras]]
# id = 201
# name = "Entry camera"
# url = "rtsp://192.0.2.20/stream1"
# username = "viewer"
# password = "camera-password"      # the name of a secret
"""

_LANES = """\
# A device is a barrier, a reader or an input module at a line. `edge-gateway drivers` lists what is known.
# [[devices]]
# id = 101                          # central's number of the device
# name = "Entry barrier"
# driver = "modbus-gate"
# link = "barrier"                  # the id of its [[links]]
# profile = "relay-barrier-fail-safe"
# unit = 1
#
# [[devices]]
# id = 102
# name = "Entry reader"
# driver = "serial-reader"
# link = "reader"
# form = "wiegand26"

# A lane joins a gate with its readers, its loops and its cameras. The gate never closes while a safety point is on.
# [[lanes]]
# id = "entry"
# name = "Entry"
# direction = "entry"
# gate = 101
# readers = [102]
# cameras = [201]
# inputs = [
#     { role = "arming", device = 101, point = "arming_loop" },
#     { role = "closing", device = 101, point = "closing_loop" },
#     { role = "safety", device = 101, point = "photocell" },
# ]
"""


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _site(new: NewSite) -> str:
    return f"""\
[site]
name = {_text(new.name)}
timezone = {_text(new.timezone)}      # for times on the page; records are stored in UTC
"""


def _api(new: NewSite) -> str:
    return f"""\
[api]                               # the page and the interface, over HTTPS only
host = {_text(new.host)}
port = {new.port}
host_names = [{", ".join(map(_text, new.host_names))}]  # addresses and this machine's name always work too

[api.tls]                           # replaced files take effect within seconds
certificate = {_text(new.certificate)}
key = {_text(new.key)}
"""


def _central(central: NewCentral | None) -> str:
    if central is None:
        return """\
# [central]                         # the site stands alone; with central:
# url = "https://central.example.com"
# username = "gateway"
# password = "central-password"     # the name of a secret
"""
    return f"""\
[central]
url = {_text(central.url)}
username = {_text(central.username)}
password = "central-password"       # the name of a secret
"""


def _found(fragment: str) -> str:
    if not fragment:
        return _LINES
    lines = ["# Found here. Take the # away from what belongs to this site, and correct ids, names and profiles."]
    return "\n".join([*lines, *(f"# {line}".rstrip() for line in fragment.splitlines()), ""])
