"""Checks that the program takes the commands and settings that the documents name."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
import typer

from drivers.modbus.profile import load_profile
from gateway.cli.app import app
from gateway.site import Secrets, load
from gateway.site.own_authority import own_certificates
from gateway.web.catalogue import OPERATIONS, RELAYED

ROOT = Path(__file__).resolve().parents[2]


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return [textwrap.dedent(found) for found in re.findall(r"^ *```toml\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)]


PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


def commands() -> list[tuple[str, str]]:
    """Whole commands of the documents: all of the README's, and those that stand on a line of their own in a block."""
    found = []
    for path in PAGES:
        text = path.read_text("utf-8")
        lines = re.findall(r"^ *(?:sudo )?(edge-gateway [^#\n]+)", "\n".join(code_blocks(text)), re.MULTILINE)
        if path.name == "README.md":
            lines += re.findall(r"`(?:sudo )?(edge-gateway [^`]+)`", text)
        found += [(path.name, line.strip()) for line in lines]
    return found


def code_blocks(text: str) -> list[str]:
    """Every block of code that is no configuration and no program of its own."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [block for language, block in found if not language]


def read_command(command: str) -> None:
    """Let the command line's own parser read a command: it refuses unknown options, and what is left out."""
    reader, words = typer.main.get_command(app), shlex.split(command)[1:]
    context = typer.Context(reader)
    while isinstance(reader, typer.core.TyperGroup):
        context = typer.Context(reader, parent=context)
        name, reader, words = reader.resolve_command(context, words)
    reader.make_context(name, words, parent=context)


def refusal(command: str) -> str:
    """Return why the command line refuses a command; empty if it takes it."""
    try:
        read_command(command)
    except Exception as error:  # noqa: BLE001 (whatever it refuses is told with its command)
        return str(error)
    return ""


def test_commands_of_the_documents_are_commands():
    found = [(document, command, refusal(command)) for document, command in commands()]
    assert [each for each in found if each[-1]] == []


def test_a_wrong_command_is_found():
    assert refusal("edge-gateway nothing")
    assert refusal("edge-gateway check site.toml --nothing")


def test_commands_of_every_page_with_steps_are_read():
    assert {"README.md", "install.md", "first-lane.md", "commands.md"} <= {name for name, _ in commands()}


def named_commands() -> list[tuple[str, tuple[str, ...]]]:
    """Commands that the text names, as their words up to the first that is no name of a command."""
    found = set()
    for path in PAGES:
        for line in re.findall(r"`(?:sudo )?edge-gateway ([^`]+)`", path.read_text("utf-8")):
            words = itertools.takewhile(re.compile(r"[a-z][a-z-]+$").match, line.split())
            found.add((path.name, tuple(words)))
    return sorted(found)


def is_command(words: tuple[str, ...]) -> bool:
    reader = typer.main.get_command(app)
    for word in words:
        if not isinstance(reader, typer.core.TyperGroup):
            return True  # the rest are values
        if word not in reader.commands:
            return False
        _, reader, _ = reader.resolve_command(typer.Context(reader), [word])
    return True


def test_commands_that_the_text_names_are_commands():
    assert named_commands()
    assert [(document, words) for document, words in named_commands() if not is_command(words)] == []
    assert not is_command(("outbox", "nothing"))


CALLED = re.compile(r"(?:\$U|https?://[^/\s]+)(/(?:v1|api/v1)/[\w/]+)")


def calls() -> list[tuple[str, str, str]]:
    """Calls of the interface: what the text names as `POST /v1/…`, and each curl of a block."""
    found = []
    for path in PAGES:
        text = path.read_text("utf-8")
        if path.name != "development.md":  # its example adds an operation
            named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`\s?]*)", text)
            found += [(path.name, *each) for each in named]
        for line in "\n".join(code_blocks(text)).replace("\\\n", " ").splitlines():
            if "curl" in line and (called := CALLED.search(line)):
                method = re.search(r"-X (\w+)", line)
                implied = "POST" if re.search(r" -[dF] ", line) else "GET"
                found.append((path.name, method.group(1) if method else implied, called.group(1)))
    return sorted(set(found))


SERVED = [
    (operation.method, re.compile(re.sub(r"\{\w+\}", r"[^/]+", operation.path) + "$"))
    for operation in (*OPERATIONS, *RELAYED)
]


def is_operation(method: str, path: str) -> bool:
    return any(method == known and place.match(path) for known, place in SERVED)


def test_calls_of_the_documents_are_operations():
    assert [call for call in calls() if not is_operation(*call[1:])] == []


def test_calls_in_blocks_are_read_and_a_wrong_one_is_found():
    found = set(calls())
    assert ("access-cards.md", "PATCH", "/v1/access/lifecycle") in found
    assert ("cameras-and-evidence.md", "POST", "/v1/camera/event/evidence") in found
    assert not is_operation("GET", "/v1/access/lifecycle")
    assert not is_operation("POST", "/v1/nothing")


def test_the_profile_of_the_guide_is_one(tmp_path):
    (text,) = blocks("docs/profiles.md")
    path = tmp_path / "yard-barrier.toml"
    path.write_text(text)
    profile = load_profile(path)
    assert profile.points["arming_loop"].inverted
    assert profile.commands.close is not None


PARTS = [
    (str(path.relative_to(ROOT)), text)
    for path in PAGES
    for text in blocks(str(path.relative_to(ROOT)))
    if path.name != "profiles.md"
]
"""Site files, and parts of one, of the documents."""
CENTRAL = 'url = "https://central.example.com"\nusername = "gateway"\npassword = "central"\n'


@pytest.mark.parametrize(("document", "part"), PARTS, ids=lambda part: part.splitlines()[0])
def test_a_site_file_of_the_documents_is_good(document, part, tmp_path):
    if "[[lanes]]" not in part:  # a part, beside what each site has
        part = 'site = { name = "North", timezone = "UTC" }\n' + part
        if "[central.accounts]" in part:
            part = part.replace("[central.accounts]", f"[central]\n{CENTRAL}[central.accounts]")
    authorities = tmp_path / "receivers-ca.pem"  # the receivers' own, which a site puts into /etc
    made = own_certificates(site="North", names=["receiver.local"], at_micros=1_780_000_000_000_000)
    authorities.write_bytes(made.authority)
    path = tmp_path / "site.toml"
    path.write_text(part.replace("/etc/edge-gateway/receivers-ca.pem", str(authorities)))
    named = ("TECHNICIAN_PASSWORD", "CENTRAL", "MQTT_PASSWORD", "BACKUP_KEY", "BACKUP_ACCESS_KEY", "BACKUP_SECRET_KEY")
    secrets = Secrets(folder=tmp_path, environ={f"EDGE_GATEWAY_SECRET_{name}": "x" for name in named})
    lanes = [lane.name for lane in load(path, secrets=secrets).lanes]
    assert lanes == (["Entry"] if "[[lanes]]" in part else [])


def test_the_terminals_of_the_first_lane_are_those_of_its_profile():
    text = (ROOT / "docs/first-lane.md").read_text("utf-8")
    told = re.findall(r"^\| .+? \| (coil|discrete input) (\d+) \|.+\| `(\w+)` \|$", text, re.MULTILINE)
    profile = load_profile(ROOT / "drivers/profiles/relay-barrier-fail-safe.toml")
    inputs = {(name, "discrete input", place.address) for name, place in profile.points.items()}
    commands = profile.commands
    outputs = {
        (name, "coil", command.address)
        for name, command in (("open", commands.open), ("close", commands.close), ("stop", commands.stop))
    }
    assert {(name, table, int(address)) for table, address, name in told} == inputs | outputs
    open_contact = re.findall(r"\| open \| `(\w+)` \|$", text, re.MULTILINE)
    assert open_contact == [name for name, place in profile.points.items() if place.inverted]


BESIDE = {"architecture.md", "contributing.md", "security-policy.md"}
"""Pages of the site that stand beside `docs/`; `scripts/docs_site.py` adds them."""


DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"))
)

TEXTS = {name: (ROOT / name).read_text("utf-8") for name in DOCUMENTS}

SEQUENCES = [
    (name, diagram)
    for name, text in TEXTS.items()
    for diagram in re.findall(r"^```mermaid\n(sequenceDiagram.*?)^```$", text, re.DOTALL | re.MULTILINE)
]


def test_no_line_of_a_sequence_ends_early():
    """A semicolon ends a statement, and the rest of the line draws nothing."""
    assert SEQUENCES
    assert [each for each in SEQUENCES if ";" in each[1]] == []


def test_the_navigation_names_every_page_once_and_the_page_of_decisions_each_decision():
    setup = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"^ +- (\S+\.md)$", setup.split("\nnav:\n")[1], re.MULTILINE)
    decided = re.findall(r"\]\((\d\S+\.md)\)", (ROOT / "docs/decisions/README.md").read_text("utf-8"))
    named += [f"decisions/{name}" for name in decided]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(pages | BESIDE)


MADE = ["interface_coverage", "interface_for_programs", "event_numbers", "troubleshooting", "log_codes"]
MADE += ["site_file_reference", "authorisation", "bill_of_materials", "drivers_and_profiles"]


@pytest.mark.parametrize("name", MADE)
def test_a_page_that_is_made_is_fresh(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    assert made.PAGE.read_text("utf-8") == made.page(), f"run scripts/{name}.py, or make docs"


FOLDERS = ("gateway", "drivers", "simulation", "config", "docs", "tests", "scripts", "systemd", "requirements")
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("gateway", "drivers", "simulation")
    for file in (ROOT / package).rglob("*.py")
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def is_there(name: str) -> bool:
    """Return whether the file, module or target of this name exists; True for any other name."""
    if re.fullmatch(rf"({'|'.join(FOLDERS)})(/[\w.-]+)+/?", name):
        return (ROOT / name).exists() or (ROOT / f"{name}.py").exists()
    if re.fullmatch(r"(gateway|drivers|simulation)(\.\w+)+", name):
        return name in MODULES
    return not name.startswith("make ") or name.split()[1] in TARGETS


def test_what_documents_name_is_there():
    found = []
    for document, text in TEXTS.items():
        if document != "CHANGELOG.md" and "\nReplaced by [" not in text:  # these name what is gone, too
            prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            found += [(document, name) for name in re.findall(r"`([^`\n]+)`", prose)]
    assert [each for each in found if not is_there(each[1])] == []


def linked() -> list[tuple[str, Path, str]]:
    """Links within the project: the document, the file that is linked to, and the place in it or an empty text."""
    return [
        (document, (ROOT / document).parent / file if file else ROOT / document, place)
        for document, text in TEXTS.items()
        for file, place in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?", text)
    ]


def test_what_documents_link_to_is_there():
    assert len(linked()) > 100
    assert [each for each in linked() if not each[1].exists()] == []


@functools.cache
def anchors(path: Path) -> set[str]:
    """The places of a page that a link can name: its headings."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_places_in_pages_that_links_name_are_there():
    assert any(place for _, _, place in linked())
    assert [each for each in linked() if each[2] and each[2] not in anchors(each[1])] == []


def test_the_index_names_every_page():
    text = (ROOT / "docs/README.md").read_text("utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in text} == set()


def test_tests_that_documents_name_are_there():
    """Whole files are named by `docs/faults.md` alone; they are looked for with what every document names."""
    found = [
        (document, file, name)
        for document, text in TEXTS.items()
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    ]
    assert len([each for each in found if each[0] == "docs/faults.md"]) > 10
    assert [
        each
        for each in found
        if not (ROOT / each[1]).exists()
        or not re.search(rf"^ *(async )?def {each[2]}\(", (ROOT / each[1]).read_text("utf-8"), re.MULTILINE)
    ] == []


def test_the_architecture_is_short_enough_to_be_read():
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split()) <= 2500


def test_decisions_are_numbered_listed_and_whole():
    records = sorted(path for path in ROOT.glob("docs/decisions/*.md") if path.name != "README.md")
    numbers = [int(path.name[:3]) for path in records]
    assert numbers == sorted(set(numbers))
    listed = re.findall(r"\]\(([^)]+)\)", (ROOT / "docs/decisions/README.md").read_text("utf-8"))
    assert listed == [path.name for path in records]
    for path in records:
        headings = re.findall(r"^## (.+)$", path.read_text("utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], path.name


def test_what_the_table_of_packages_says_lives_there_does():
    rows = re.findall(
        r"^\| `((?:gateway|drivers|simulation)[\w.]*)` \| (.+) \|$",
        (ROOT / "ARCHITECTURE.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 10
    named = [(package, name) for package, says in rows for name in re.findall(r"`([\w.]+)`", says)]
    assert [each for each in named if ".".join(each) not in MODULES and each[1] not in MODULES] == []


def test_a_name_of_nothing_is_found():
    assert not any(map(is_there, ("docs/nothing.md", "gateway.nothing", "drivers/nothing", "make nothing")))
    assert all(
        map(is_there, ("docs/relay.md", "gateway.app.gateway", "drivers/child_process", "make check", "SITE.toml"))
    )
