"""Faults of the site file in French, as the page's settings show them; the names of keys stay."""

from __future__ import annotations

import ast
import copy
import json
import re
import tomllib
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import ValidationError

import drivers
import gateway.site
from gateway.site import Site
from gateway.site.faults import faults_of
from gateway.site.formats import understood
from tests.gateway.web.setups.words import recognised_in_french
from tests.gateway.web.test_languages import ENGLISH, english_sentences

pytestmark = pytest.mark.long("every fault of the site file, in a script engine")

in_one_loop = pytest.mark.asyncio(loop_scope="module")

SOURCES = Path(gateway.site.__file__).parent
DRIVERS = Path(drivers.__file__).parent
SECTIONS = (*sorted(DRIVERS.glob("*/section.py")), DRIVERS / "kinds.py", DRIVERS / "settings.py")
"""The sections of devices, which make faults too."""
EXAMPLE = Path(__file__).parents[3] / "config" / "site.example.toml"
SAID_ELSEWHERE = {
    "doubts": "warnings, which `check` and the log show",
    "section.line_doubts": "likewise",
    "section.doubts_beside": "likewise",
    "load._CLOSE_PULSE_BY_GATEWAY": "likewise",
    "load.doubtful": "likewise",
    "load._line_of": "a pattern",
    "load._certificate_doubts": "likewise",
    "formats.Renamed": "likewise",
    "formats.Removed": "likewise",
    "formats.Gathered": "likewise",
    "formats.STEPS": "likewise",
    "formats.rewritten": "a command",
    "formats._rename": "likewise",
    "formats._gather": "likewise",
    "roles": "names and labels, whose texts stand where they are shown",
    "secrets.NewSecret": "likewise",
    "secrets.how_changed": "a part of a problem's sentence",
    "reader_numbers": "warnings of cards",
    "difference": "changes, which the catalogue knows without the brackets around a section",
    "edits": "likewise",
    "new_site": "the text of a new file",
    "own_authority": "certificates of a new site",
    "shown_file": "only patterns",
}
"""Parts of `gateway.site` and of sections of devices whose sentences are no faults of the site file, with reasons."""
WRONG = ("x y", "", -1, 10**9, 1.5, True, [], {}, [{}], ["", ""])
LIBRARY = ("Input", "should", "nable to", "tuple", "Value error", "pattern", "Field", "cannot be taken", "array")
"""Words of pydantic, and of programs."""
SHOWN = {
    "lanes[1].gate (lane exit): no device 103": "lanes[1].gate (voie exit) : pas d'appareil 103",
    "site.nmae: unknown key": "site.nmae : clé inconnue",
    "devices[1].unit (device 102): is 250; units are 1 to 247, or 255 for the device itself": (
        "devices[1].unit (appareil 102) : est 250 ; les modules vont de 1 à 247, ou 255 pour l'appareil même"
    ),
    "lanes[1].gate (lane exit): 101 is already used by lane entry": (
        "lanes[1].gate (voie exit) : 101 est déjà utilisé par la voie entry"
    ),
    "devices[0].profile (device 1): no profile 'barier'; did you mean 'barrier'?": (
        "devices[0].profile (appareil 1) : pas de profil 'barier' ; vouliez-vous dire 'barrier' ?"
    ),
    'profile \'p\' is for driver = "modbus-gate" or driver = "modbus-io", not for "x"': (
        'le profil \'p\' est pour driver = "modbus-gate" ou driver = "modbus-io", pas pour "x"'
    ),
    "cameras[0].url: must be rtsp://…, rtsps://…, whep://… or wheps://…": (
        "cameras[0].url : doit être rtsp://…, rtsps://…, whep://… ou wheps://…"
    ),
    "'camera' must be tcp://host:port or serial:/dev/… for this device": (
        "'camera' doit être tcp://host:port ou serial:/dev/… pour cet appareil"
    ),
    "devices[2].key: secret 'k' is the key that every new reader knows; `edge-gateway osdp provision` makes another": (
        "devices[2].key : le secret 'k' est la clé que connaît tout lecteur neuf ;"
        " `edge-gateway osdp provision` en crée une autre"
    ),
    "devices[2].key: no secret 'k': not among systemd's credentials, not in K, no file /k;"
    " `edge-gateway osdp provision` makes it": (
        "devices[2].key : pas de secret 'k' : ni parmi les credentials de systemd, ni dans K, ni de fichier /k ;"
        " `edge-gateway osdp provision` le crée"
    ),
    "is not TOML: Expected '=' after a key in a key/value pair (at line 12, column 4)": (
        "n'est pas du TOML : '=' est attendu après une clé (ligne 12, colonne 4)"
    ),
    "lanes[0].arming.device (lane entry): device 201 is not a device with points": (
        "lanes[0].arming.device (voie entry) : l'appareil 201 n'est pas un appareil à points"
    ),
    "'open' is the gate's closed limit in its profile, not a safety point": (
        "'open' est le fin de course de fermeture de la barrière dans son profil, pas un point de sécurité"
    ),
    "the site file has 2 faults and is not in use; the first: lanes[0].far (lane entry): only a two-way lane has a"
    " second arming loop": (
        "le fichier du site a 2 fautes et n'est pas en vigueur ; la première : lanes[0].far (voie entry) :"
        " seule une voie à deux sens a une seconde boucle d'approche"
    ),
}


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(open_gateway):
    async with open_gateway() as opened:
        yield opened


def sentences():
    """Yield each text of the code that makes faults, with places as the catalogue writes them, and where it stands."""
    for source in (*sorted(SOURCES.glob("*.py")), *SECTIONS):
        for part in ast.parse(source.read_text(encoding="utf-8")).body:
            targets = [part.target] if isinstance(part, ast.AnnAssign) else getattr(part, "targets", ())
            names = [part.name] if hasattr(part, "name") else [ast.unparse(one) for one in targets]
            if source.stem in SAID_ELSEWHERE or any(f"{source.stem}.{name}" in SAID_ELSEWHERE for name in names):
                continue
            apart = {name.partition(".")[2] for name in SAID_ELSEWHERE if name.startswith(f"{source.stem}.")}
            for text in _texts(part, apart):
                if re.search(r"[a-z]{2,} [a-z]", text):
                    yield f"{source.name}: {text}", _form(text)


def _texts(node, apart):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    elif (isinstance(node, ast.keyword) and node.arg in {"description", "loss"}) or (  # a loss is told by a warning
        isinstance(node, ast.FunctionDef) and node.name in apart
    ):
        return
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _texts(inner, apart)


def _form(text):
    """Return a text with its places alike, and records as people are shown them: `lanes[0]` is "lane entry"."""
    return re.sub(r"(\w+)s\[\{\}\]", r"\1 {}", re.sub(r"\{\w*\}", "{}", text)).replace("{}[{}]", "{}")


def test_each_sentence_of_a_fault_has_its_french():
    known = {_form(english) for english in english_sentences()}
    assert [where for where, form in sentences() if form not in known] == []


def test_nothing_is_left_out_that_is_not_there():
    there = {source.stem for source in (*SOURCES.glob("*.py"), *SECTIONS)}
    assert {one for one in SAID_ELSEWHERE if one.partition(".")[0] not in there} == set()


def faults_of_wrong_values():
    """Return the faults of the example of a site file, with each of its values wrong in turn."""
    raw = understood(tomllib.loads(EXAMPLE.read_text(encoding="utf-8")))
    found = set()
    for place in _places(raw):
        for wrong in WRONG:
            tree = copy.deepcopy(raw)
            node = tree
            for step in place[:-1]:
                node = node[step]
            node[place[-1]] = wrong
            try:
                Site.model_validate(tree)
            except ValidationError as error:
                found |= {str(fault) for fault in faults_of(error)}
    return sorted(found)


def _places(node, place=()):
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*place, key)
        if isinstance(inner, dict | list):
            yield from _places(inner, (*place, key))


def test_no_fault_speaks_in_the_words_of_a_library():
    told = faults_of_wrong_values()
    assert len(told) > 200
    assert [fault for fault in told if any(word in fault.partition(": ")[2] for word in LIBRARY)] == []


@in_one_loop
async def test_faults_are_shown_in_french_with_the_keys_as_they_are(gateway, browser_page):
    assert await recognised_in_french(gateway, browser_page, list(SHOWN)) == SHOWN
    shown = await recognised_in_french(gateway, browser_page, faults_of_wrong_values())
    english = {fault: french for fault, french in shown.items() if re.search(ENGLISH, french.partition(" : ")[2])}
    assert english == {}, json.dumps(english, indent=1)
    keys = {fault: fault.partition(": ")[0] for fault in shown}
    assert [fault for fault, key in keys.items() if "." in key and not shown[fault].startswith(f"{key} :")] == []
