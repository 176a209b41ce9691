"""A driver of another distribution: `acme-gate` beside this file, found by its entry point alone."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from acme_gate_far_end import AcmeFarEnd
from conformance import Conformance, Driven
from faulty_line import Fault
from running_gateway import PROGRAM, typed_here
from waiting import until

from drivers.contract import GateMoved, GatePosition, StoppingGate
from drivers.device import Surroundings
from drivers.kinds import UnusableDriver, section_of
from drivers.link import LinkSpec
from gateway.app.contexts import RunContext
from gateway.app.devices import build_field
from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.domain.commands import GateAction
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load, load_whole
from gateway.site.trial_files import TrialFiles
from simulation.far_ends.barrier import Barrier, Wish

SOURCE = Path(__file__).with_name("acme-gate")
TOKEN = "correct-horse-battery"
SITE = """
[site]
name = "North"
[api]
port = 0
[storage]
media_gigabytes = 1
free_floor_gigabytes = 0.1
[[links]]
id = "acme"
url = "http://127.0.0.1:{port}"
[[devices]]
id = 101
name = "Gate"
driver = "{driver}"
link = "acme"
token = "acme-token"
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
arming = {{ device = 101, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
safety = [{{ device = 101, point = "photocell" }}]
closes = "gateway"
clear_seconds = 0.3
clear_after_loss_seconds = 0.3
"""


def install(folder: Path, *, name: str = "acme-gate", value: str = "acme_gate.section:AcmeGateDevice", by="acme-gate"):
    """Write what an installer leaves in a folder of the path: the package and the distribution's metadata."""
    shutil.copytree(SOURCE / "acme_gate", folder / "acme_gate", dirs_exist_ok=True)
    info = folder / f"{by.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {by}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[edge_gateway.drivers]\n{name} = {value}\n")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of the path that ends with the test, with all modules that came from it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for module in set(sys.modules) - before:
        if module.partition(".")[0] in {"acme_gate", "broken_gate"}:
            del sys.modules[module]


@pytest.fixture
def site(tmp_path):
    def write(*, port: int = 8081, driver: str = "acme-gate") -> Path:
        (tmp_path / "secrets").mkdir(mode=0o700, exist_ok=True)
        secret = tmp_path / "secrets" / "acme-token"
        secret.write_text(TOKEN)
        secret.chmod(0o600)
        path = tmp_path / "site.toml"
        path.write_text(SITE.format(port=port, driver=driver))
        return path

    return write


def far_end(*, travel_seconds: float = 0.3) -> AcmeFarEnd:
    return AcmeFarEnd(barrier=Barrier(travel_seconds=travel_seconds), token=TOKEN)


class TestAcmeGate(Conformance):
    lines = ("tcp",)
    recovers_from = (Fault.DUPLICATED, Fault.ECHOED)  # spoilt bytes are TCP's own to find; HTTP has no check sum
    numbered = True  # HTTP keeps question and answer together
    fresh_within = None  # nothing changes at a gate that stands still

    @pytest.fixture(autouse=True)
    def _installed(self, packages):
        install(packages)
        section = section_of("acme-gate")
        self.section = section(id=101, name="Gate", driver="acme-gate", link="acme", token="acme-token")
        from acme_gate.gate import AcmeGate  # it is found only now

        type(self).drives = (AcmeGate,)

    @asynccontextmanager
    async def far_end(self, folder):
        self.far = far_end()
        async with self.far.serve() as port:
            yield LinkSpec(f"tcp://127.0.0.1:{port}")

    def commanded(self):
        return len(self.far.obeyed)

    def driven(self, near):
        parts = Surroundings(
            spec=LinkSpec(near.url.replace("tcp://", "http://")),
            line=None,
            secret={"acme-token": TOKEN}.__getitem__,
            find_profile=lambda _name: None,
            monotonic=time.monotonic,
        )
        gate = self.section.build(parts)
        assert isinstance(gate, StoppingGate)
        return Driven(gate)

    def is_true(self, report):
        return not isinstance(report, GateMoved) or report.position is GatePosition.CLOSED


async def test_a_running_gateway_drives_a_gate_by_it(packages, site, tmp_path):
    install(packages)
    far = far_end()
    async with far.serve() as port:
        path = site(port=port)
        secrets = Secrets(folder=tmp_path / "secrets", environ={})
        with DataFolder.open(tmp_path / "data") as data:
            run = RunContext(
                loaded=load_whole(path, secrets=secrets),
                files=TrialFiles(path=path, folder=tmp_path / "data" / "site-file"),
                folder=data,
                secrets=secrets,
                notify=Notify(address=None),
            )
            gateway = Gateway(run)
            async with asyncio.TaskGroup() as group:
                living = group.create_task(gateway.live())
                try:
                    await until(lambda: gateway.services and gateway.lanes.devices()[0].online)
                    await gateway.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
                    await until(lambda: gateway.lanes.lanes()[0].position is GatePosition.OPEN)
                    assert far.obeyed == [Wish.OPEN]
                    assert gateway.field.field.stoppable == {101}
                finally:
                    signal.raise_signal(signal.SIGTERM)
                    await living


def test_check_takes_a_site_with_it_and_drivers_lists_it(packages, site):
    install(packages)
    checked = typed_here("check", site())
    assert checked.returncode == 0
    assert checked.stdout.startswith(f"{site()} is good: North with 1 lane, 1 gate, 0 readers, 0 cameras, 1 link")
    listed = typed_here("drivers").stdout
    assert "acme-gate" in listed
    assert "An ACME gate with its loops, commanded with JSON over HTTP. (acme-gate 1.0)" in " ".join(listed.split())


def test_its_section_is_checked_like_any_other(packages, site):
    install(packages)
    path = site()
    path.write_text(path.read_text().replace('token = "acme-token"', "").replace("photocell", "curtain"))
    assert told(path) == "devices[0].token (device 101): is required"
    path.write_text(SITE.format(port=8081, driver="acme-gate").replace("photocell", "curtain"))
    assert told(path) == (
        "lanes[0].safety[0].point (lane entry): device 101 has no point 'curtain'"
        " (it has arming_loop, closing_loop, photocell)"
    )


def told(path: Path) -> str:
    """Return the faults that `check` tells, without the line that counts them."""
    checked = typed_here("check", path)
    assert checked.returncode == 2
    return "\n".join(checked.stderr.splitlines()[:-1])


def test_a_kind_that_is_not_installed_is_named_with_those_that_are(packages, site):
    install(packages)
    fault = told(site(driver="acne-gate"))
    assert fault.startswith(
        "devices[0].driver (device 101): no driver 'acne-gate' is installed; there are acme-gate, axis"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "import no_such_library",
            "driver 'broken' of broken 1.0 cannot be loaded: ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("raise SystemExit('no licence')", "driver 'broken' of broken 1.0 cannot be loaded: SystemExit: no licence"),
        (
            "class Section: pass",
            "driver 'broken' of broken 1.0 cannot be used: broken_gate:Section is no device's section",
        ),
        (
            "from acme_gate.section import AcmeGateDevice as Section",
            "driver 'broken' of broken 1.0 cannot be used: its section is for driver = 'acme-gate'",
        ),
    ],
)
def test_a_broken_one_is_told_in_one_sentence_and_stops_nothing_else(packages, site, source, why):
    install(packages)
    install(packages, name="broken", value="broken_gate:Section", by="broken")
    (packages / "broken_gate.py").write_text(source)
    assert told(site(driver="broken")) == f"devices[0].driver (device 101): {why}"
    assert typed_here("check", site()).returncode == 0
    listed = " ".join(typed_here("drivers", "--json").stdout.split())
    assert f'"purpose": "unusable: {why}"' in listed
    assert "An ACME gate with its loops" in listed


def test_a_distribution_with_damaged_metadata_hides_no_other(packages, site):
    install(packages)
    install(packages, by="damaged")
    (packages / "damaged-1.0.dist-info" / "entry_points.txt").write_bytes(b"[edge_gateway.drivers]\nacme\n\xff")
    assert typed_here("check", site()).returncode == 0
    assert "no driver 'acme' is installed; there are acme-gate" in told(site(driver="acme"))


def test_a_section_that_raises_anything_is_told(packages, site):
    install(packages)
    section = packages / "acme_gate" / "section.py"
    section.write_text(
        section.read_text().replace(
            "class AcmeGateDevice(GateDevice):",
            "from pydantic import model_validator\n\n\nclass AcmeGateDevice(GateDevice):",
        )
        + '\n    @model_validator(mode="after")\n    def _sound(self):\n        raise KeyError("token")\n'
    )
    fault = told(site())
    assert fault == ("devices[0].driver (device 101): driver 'acme-gate' cannot check its section: KeyError: 'token'")


@pytest.mark.parametrize("question", ["line_kinds(self)", "number(self)", "abilities(self, find_profile)"])
def test_a_section_that_cannot_answer_is_told(packages, site, question):
    install(packages)
    section = packages / "acme_gate" / "section.py"
    section.write_text(section.read_text() + f"\n    def {question}:\n        raise KeyError('token')\n")
    fault = "devices[0].driver (device 101): driver 'acme-gate' cannot check its section: KeyError: 'token'"
    assert told(site()) == fault


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ('parts.secret("chief")', "device 101 asks for secret 'chief', which none of its keys names"),
        (
            "parts.bus",
            "device 101: driver 'acme-gate' cannot be built: TypeError: the section's `new_line` makes no bus",
        ),
    ],
)
def test_a_section_that_cannot_build_its_driver_is_told(packages, site, tmp_path, asked, why):
    install(packages)
    section = packages / "acme_gate" / "section.py"
    section.write_text(section.read_text().replace("parts.secret(self.token)", asked))
    path, secrets = site(), Secrets(folder=tmp_path / "secrets", environ={})
    with pytest.raises(ConfigError) as told:
        build_field(load(path, secrets=secrets), site_path=path, clock=SystemClock(), secrets=secrets)
    assert str(told.value) == why


def test_a_name_that_two_distributions_use_is_told(packages, site):
    install(packages)
    install(packages, by="acme-fork")
    assert told(site()) == (
        "devices[0].driver (device 101): driver 'acme-gate' is installed more than once,"
        " by acme-fork 1.0 and acme-gate 1.0: remove one"
    )


def test_no_distribution_takes_the_name_of_a_driver_that_comes_along(packages):
    install(packages, name="modbus-gate")
    assert section_of("modbus-gate").__module__ == "drivers.modbus.section"
    listed = " ".join(typed_here("drivers", "--json").stdout.split())
    assert "unusable: driver 'modbus-gate' of acme-gate 1.0 has the name of one that comes along" in listed


def test_a_driver_is_loaded_only_when_it_is_named(packages):
    install(packages, name="broken", value="broken_gate:Section", by="broken")
    (packages / "broken_gate.py").write_text("raise AssertionError('loaded')")
    section_of("serial-gate")
    with pytest.raises(UnusableDriver, match=r"no driver 'other' is installed; there are .*broken"):
        section_of("other")
    assert "broken_gate" not in sys.modules


@pytest.mark.long("pip builds and installs a package; the program is started for each command")
def test_pip_installs_it_and_the_program_finds_it(site, tmp_path):
    source, target = tmp_path / "source", tmp_path / "site-packages"
    shutil.copytree(SOURCE, source)
    words = ("install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--target", target, source)
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(target)}
    checked = subprocess.run([PROGRAM, "check", site()], env=environ, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    without = subprocess.run([PROGRAM, "check", site()], env={}, capture_output=True, text=True, check=False)
    assert without.returncode == 2
    assert "no driver 'acme-gate' is installed" in without.stderr
