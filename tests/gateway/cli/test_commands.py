"""The program as people call it: what it says, where, and its exit status."""

import json
import signal
import socket
from pathlib import Path

import pytest
from running_gateway import SITE, RunningGateway, typed, typed_here
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app
from gateway.cli.commands import NAMED


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def test_version(tmp_path):
    result = typed("--version", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("edge-gateway ")


def with_all_below(command, *words):
    """The command and all those below it, each as it is typed."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from with_all_below(inner, *words, name)


@pytest.mark.parametrize("named", [None, *NAMED], ids=lambda named: named.name if named else "the program itself")
def test_every_command_has_help_with_an_example(named):
    for words in with_all_below(named.loaded(), named.name) if named else [()]:
        result = CliRunner().invoke(app, [*words, "--help"], obj=Invocation(), env={"COLUMNS": "160"})
        assert result.exit_code == 0
        assert " ".join(("Example: edge-gateway", *words[:1])) in " ".join(result.stdout.split()), words


def test_good_site_is_one_line_and_one_per_warning(site, tmp_path):
    result = typed("check", "site.toml", "--data", "none", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "site.toml is good: Small with 0 lanes, 0 gates, 0 readers, 0 cameras, 0 links; no central service\n"
        "warning: lanes: the file has no lanes, so no gate opens; add [[lanes]]\n"
    )


def test_check_tells_programs_what_it_found(site, tmp_path):
    good = typed("check", "site.toml", "--json", cwd=tmp_path)
    told = json.loads(good.stdout)
    assert (good.returncode, told["good"], told["faults"]) == (0, True, [])
    assert told["warnings"] == ["lanes: the file has no lanes, so no gate opens; add [[lanes]]"]
    site.write_text(SITE + "colour = 1\n")
    bad = typed("check", "site.toml", "--json", cwd=tmp_path)
    assert (bad.returncode, bad.stderr) == (2, "")
    assert json.loads(bad.stdout)["faults"] == ["api.colour: unknown key"]


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_bad_site_gives_every_fault_and_status_2(command, site, tmp_path):
    site.write_text(SITE + 'colour = 1\n[[cameras]]\nid = 1\nname = "x"\nurl = "http://x"\n')
    result = typed(command, "site.toml", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert sorted(result.stderr.splitlines()) == [
        "api.colour: unknown key",
        "cameras[0].url (camera 1): must be rtsp://…, rtsps://…, whep://… or wheps://…",
        "edge-gateway: site.toml has 2 faults",
    ]
    assert not (tmp_path / "data").exists()


def test_wrong_usage_is_status_2(tmp_path):
    result = typed("check", cwd=tmp_path)
    assert result.returncode == 2
    assert "Missing argument" in result.stderr


@pytest.fixture
def daemon(monkeypatch):
    """Sets what runs instead of the daemon, in this process."""
    monkeypatch.setattr("gateway.cli.run.do_without_rich", lambda: None)  # others of this process need it
    return lambda instead: monkeypatch.setattr("gateway.app.gateway.run", instead)


@pytest.mark.parametrize("options", [(), ("--debug",)])
def test_an_unexpected_error_is_one_sentence_unless_debugging(options, daemon, tmp_path):
    def broken(**_):
        raise ExceptionGroup("of one", [ZeroDivisionError("by rtsp://viewer:hunter2@camera/")])

    daemon(broken)
    result = typed_here(*options, "run", "site.toml", cwd=tmp_path)
    lines = result.stderr.splitlines()
    assert result.returncode == 1
    assert lines[-1].startswith("edge-gateway: unexpected ZeroDivisionError: by rtsp://***@camera/")
    assert ("Traceback" in result.stderr) is (options == ("--debug",))
    assert len(lines) == 1 or options
    assert "hunter2" not in result.stderr


class Running(RunningGateway):
    """A gateway under something that listens as systemd does."""

    def __init__(self, folder, *options, **environ):
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inbox.bind(str(folder / "notify"))
        self.inbox.settimeout(20)
        super().__init__(folder, *options, NOTIFY_SOCKET=str(folder / "notify"), **environ)

    def __exit__(self, *error):
        super().__exit__(*error)
        self.inbox.close()

    def hear(self, line):
        while line not in self.inbox.recv(4096).decode().split("\n"):
            pass


def test_run_is_ready_refuses_a_second_feeds_the_watchdog_and_stops_when_told(site, tmp_path):
    with Running(tmp_path, STATE_DIRECTORY=str(tmp_path / "state"), WATCHDOG_USEC="400000") as running:
        running.hear("READY=1")
        second = typed("run", "site.toml", "--data", "state", cwd=tmp_path)
        holder = f"in use by another edge-gateway, process {running.process.pid}"
        assert second.returncode == 2
        assert second.stderr == f"edge-gateway: data folder {tmp_path}/state is {holder}\n"
        running.hear("WATCHDOG=1")
        running.hear("WATCHDOG=1")
        running.process.send_signal(signal.SIGTERM)
        running.hear("STOPPING=1")
        assert running.process.wait(15) == 0
    assert (tmp_path / "state" / "lock").exists()


def test_run_keeps_its_data_where_it_is_told_or_beside_the_site_file(site, daemon, tmp_path):
    kept = []
    daemon(lambda *, site_path, data: kept.append((site_path, data)))
    state = str(tmp_path / "state")
    for options, environ in (
        (("--data", "kept"), {"STATE_DIRECTORY": state}),
        ((), {"STATE_DIRECTORY": state}),
        ((), {}),
    ):
        assert typed_here("run", site, *options, cwd=tmp_path, **environ).returncode == 0
    assert kept == [(site, folder) for folder in (Path("kept"), tmp_path / "state", tmp_path / "data")]


def test_a_report_without_a_place_is_told_before_the_run(tmp_path):
    result = typed("simulate", "--days", "3000", "--report", "no/such/folder/report.json", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        "edge-gateway: --report no/such/folder/report.json cannot be written: No such file or directory\n"
    )
