"""Two gateways of one machine never drive the same line."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

import pytest

from gateway.domain.errors import ConfigError
from gateway.site.line_locks import LineLocks
from gateway.site.models import Link

HOLD = """
import sys
from gateway.site.line_locks import LineLocks
from gateway.site.models import Link
with LineLocks(links=[Link(id="theirs", url=sys.argv[1])]):
    print("held", flush=True)
    sys.stdin.read()
"""


def locks(*urls):
    return LineLocks(links=[Link(id=f"line-{number}", url=url) for number, url in enumerate(urls)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp://127.0.0.1:59999", "tcp://127.0.0.1:59999"),
        ("tcp://Gate-59999.example:502", "tcp://gate-59999.example:502"),
        ("http://192.0.2.99", "http://192.0.2.99:80/"),
        ("serial:/dev/ttyS59", "serial:/dev/../dev/ttyS59"),
    ],
)
def test_a_line_has_one_gateway(one, other):
    with locks("tcp://127.0.0.1:59998", one):
        with pytest.raises(
            ConfigError, match=r"^link line-1 \(.+\) is driven by another edge-gateway on this machine$"
        ):
            locks("tcp://127.0.0.1:59997", other).__enter__()
        with locks("tcp://127.0.0.1:59997", "serial:/dev/ttyS58"):  # what was taken before the refusal is free again
            pass
    with locks(other):
        pass


def test_a_port_of_a_file_system_is_one_port_under_each_of_its_names(tmp_path):
    port, name = tmp_path / "ttyUSB0", tmp_path / "by-id"
    port.touch()
    name.symlink_to(port)
    with locks(f"serial:{port}"), pytest.raises(ConfigError):
        locks(f"serial:{name}").__enter__()


def test_a_pseudo_terminal_goes_by_the_name_that_leads_to_it(tmp_path):
    """Its number is given to another one while a gateway still waits for the first to come back."""
    for name in ("one", "other"):
        (tmp_path / name).symlink_to("/dev/pts/999")
    with locks(f"serial:{tmp_path}/one"), locks(f"serial:{tmp_path}/other"), pytest.raises(ConfigError):
        locks(f"serial:{tmp_path}/one").__enter__()


def test_a_port_that_devices_push_to_is_not_held():
    with ExitStack() as both:
        for _ in range(2):
            both.enter_context(locks("http-listen://127.0.0.1:59996"))


def test_a_killed_gateway_lets_go():
    url = "tcp://127.0.0.1:59995"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError):
            locks(url).__enter__()
        holder.kill()
        holder.wait()
        with locks(url):
            pass
