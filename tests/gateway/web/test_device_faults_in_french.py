"""Faults of devices, cameras and their profiles in French, as drivers say them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import pytest_asyncio

import drivers
from gateway.site import SiteFaults
from gateway.site.load import load
from tests.gateway.web.setups.words import recognised_in_french
from tests.gateway.web.test_languages import ENGLISH, english_sentences

pytestmark = pytest.mark.long("every fault of every device, in a script engine")

SOURCES = Path(drivers.__file__).parent
PEOPLE_SEE = re.compile(
    r"Account|Camera|Codec|Device|Deadline|Fault|LinkError|LineDown|NotPermitted|ProtocolV|TooLate|UnitRests|ValueError"
)
"""Words of the errors that reach people: those of drivers, and faults of a profile."""
REFUSED_BY = {"MessageRefused", "_refused"}
"""The calls that refuse a message: their second argument is why."""
SAID_ELSEWHERE = {
    "delivery.py": "a fault of this machine's routes, for the log",
    "link.py: not ": "the site file's own checks come first",
    "osdp/channel.py": "likewise",
    "modbus/frames.py: the values": "mistakes of the program",
    "modbus/frames.py: only a write": "likewise",
    "plates/pushed.py": "the site file's own checks come first",
    "plates/stream.py": "likewise",
    "rtsp/server": "answers to those who watch this machine's streams",
    "webrtc/picture_sender.py": "mistakes of the program",
    "serial_line/splitter.py": "the site file's own checks come first",
    "serial_line/profile.py: {}: {}": "puts the place before another fault",
}
"""Texts that no page shows, by the begin of their place, each with its reason."""
PROFILE = """
name = "Mine"
[points]
a = { table = "coil", address = 70000 }
b = { table = "holding_register", address = 1 }
[commands]
open = { write = "coil", address = 0, value = true, pulse_unit_ms = 5, extra = 1 }
"""
SITE = """
format = 4
[site]
name = "X"
timezone = "UTC"
[[links]]
id = "line"
url = "tcp://127.0.0.1:502"
[[devices]]
id = 101
name = "Gate"
driver = "modbus-gate"
link = "line"
profile = "mine"
"""


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


def sentences():
    """Yield each text that a driver raises for people, as the catalogue's forms write it, after where it stands."""
    for source in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            raised = node.exc if isinstance(node, ast.Raise) else None
            if isinstance(node, ast.Call) and ast.unparse(node.func) in REFUSED_BY and len(node.args) > 1:
                text = _text(node.args[1])
            elif isinstance(raised, ast.Call) and raised.args and PEOPLE_SEE.search(ast.unparse(raised.func)):
                text = _text(raised.args[0])
            else:
                continue
            where = f"{source.relative_to(SOURCES)}: {text}"
            if re.search(r"[a-z]+ [a-z]", text) and not where.startswith(tuple(SAID_ELSEWHERE)):
                yield where


def _text(node):
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
    return ""


def test_each_sentence_of_a_driver_has_its_french():
    known = [re.sub(r"\{\w+\}", "{}", english) for english in english_sentences()]
    whole = set(known)
    forms = [re.compile(re.escape(one).replace(r"\{\}", ".+")) for one in known if "{}" in one and len(one) > 12]
    told = [where.partition(": ")[::2] for where in sentences()]
    assert len(told) > 100
    missing = [f"{where}: {text}" for where, text in told if text not in whole and not _fits(forms, text)]
    assert missing == []


def _fits(forms, text):
    return any(form.fullmatch(text) for form in forms)


@pytest.mark.asyncio(loop_scope="module")
async def test_faults_within_a_profile_are_recognised_in_french(gateway, browser_page, tmp_path):
    (tmp_path / "profiles").mkdir()
    told = []
    for content in (PROFILE, "name = ", 'name = "x"\n[points]\n', PROFILE.replace("address = 70000", "address = 7")):
        (tmp_path / "profiles" / "mine.toml").write_text(content)
        (tmp_path / "site.toml").write_text(SITE)
        with pytest.raises(SiteFaults) as error:
            load(tmp_path / "site.toml")
        told += [str(fault).replace(str(tmp_path), "/x") for fault in error.value.faults]
    shown = await recognised_in_french(gateway, browser_page, told)
    assert len(shown) > 4
    assert {english: french for english, french in shown.items() if re.search(ENGLISH, french)} == {}


CAMERA = {
    "Cam: the camera refused the account (user name or password)": (
        "Cam : la caméra a refusé le compte (nom d'utilisateur ou mot de passe)"
    ),
    "Cam is not recording: nothing listens at the camera's address": (
        "Cam n'enregistre pas : rien n'écoute à l'adresse de la caméra"
    ),
    "Cam: what answers at the camera's address does not speak RTSP": (
        "Cam : ce qui répond à l'adresse de la caméra ne parle pas RTSP"
    ),
    "Cam: no connection to the camera (No route to host)": (
        "Cam : pas de connexion à la caméra (aucune route vers l'hôte)"
    ),
}


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_wrong_with_a_camera_is_recognised_in_french(gateway, browser_page):
    assert await recognised_in_french(gateway, browser_page, list(CAMERA)) == CAMERA
