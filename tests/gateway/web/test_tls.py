"""HTTPS of the gateway itself: who gets it, with which certificate, and the commands that ask over it."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess

import pytest
from aiohttp import ClientSession
from certificates import write_pair
from free_ports import free_port
from running_gateway import PASSWORD, SECRETS, RunningGateway, typed
from structlog.testing import capture_logs
from waiting import until

from gateway.web.http import served_certificate

ACCOUNT = '[[api.accounts]]\nusername = "chief"\npassword = "chief"\n'


def site(folder, api, *, port=0):
    (folder / "site.toml").write_text(f'[site]\nname = "North"\n[api]\nport = {port}\n{api}\n{ACCOUNT}')
    return folder / "site.toml"


def curl(*arguments):
    return subprocess.run(["curl", "-sS", "-m", "10", *arguments], capture_output=True, text=True, check=False)


def served(port):
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30)


def test_the_interface_is_served_over_tls_and_commands_find_it_there(tmp_path):
    pair, port = write_pair(tmp_path), free_port()
    site(tmp_path, f'host_names = ["gate.example.com"]\n{pair.section()}', port=port)
    with RunningGateway(tmp_path, "--data", tmp_path / "data", **SECRETS) as gateway:
        assert gateway.serves() == port
        url = f"https://gate.example.com:{port}"
        named = ("--resolve", f"gate.example.com:{port}:127.0.0.1", "--cacert", str(pair.certificate))
        assert json.loads(curl(*named, f"{url}/health/live").stdout)["success"] is True
        account = json.dumps({"username": "chief", "password": PASSWORD})
        answer = curl(*named, "-i", "-d", account, f"{url}/v1/auth/login").stdout
        assert "; Secure" in next(line for line in answer.splitlines() if line.lower().startswith("set-cookie"))
        trusting = {"EDGE_GATEWAY_PASSWORD": PASSWORD, "SSL_CERT_FILE": str(pair.certificate)}
        told = typed("outbox", "list", "--url", f"https://chief@localhost:{port}", **trusting)
        assert (told.returncode, told.stderr) == (0, "")
        assert "central refused nothing" in told.stdout
        assert curl(f"http://127.0.0.1:{port}/health/live").returncode != 0


def test_a_command_speaks_to_nobody_with_another_certificate(tmp_path):
    (tmp_path / "other").mkdir()
    other, own, port = write_pair(tmp_path / "other"), write_pair(tmp_path), free_port()
    site(tmp_path, other.section(), port=port)
    with RunningGateway(tmp_path, "--data", tmp_path / "data", **SECRETS) as gateway:
        gateway.serves()
        trusting = {"EDGE_GATEWAY_PASSWORD": PASSWORD, "SSL_CERT_FILE": str(own.certificate)}
        told = typed("outbox", "list", "--url", f"https://chief@localhost:{port}", **trusting)
    assert told.returncode == 1
    assert f"the certificate of localhost:{port} is not trusted: self-signed certificate" in told.stderr
    assert "Traceback" not in told.stderr


def test_tls_1_1_is_refused(tmp_path):
    site(tmp_path, write_pair(tmp_path).section())
    with RunningGateway(tmp_path, "--data", tmp_path / "data", **SECRETS) as gateway:
        port = gateway.serves()
        assert "New, TLSv1.2" in handshake(port, "-tls1_2")
        assert "no peer certificate available" in handshake(port, "-tls1_1")


def handshake(port, version):
    """Return what openssl says of a handshake with this version alone."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version, "-cipher", "DEFAULT@SECLEVEL=0"]
    ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=20, check=False)
    return ended.stdout + ended.stderr


async def test_a_replaced_certificate_counts_without_a_restart_and_half_a_pair_does_not(
    open_gateway, tmp_path, monkeypatch
):
    monkeypatch.setattr(served_certificate, "LOOK_SECONDS", 0.05)
    pair = write_pair(tmp_path)
    (tmp_path / "new").mkdir()
    new = write_pair(tmp_path / "new")

    def told(event):
        return [entry for entry in log if entry["event"] == event]

    with capture_logs() as log:
        async with open_gateway(tls=pair) as gateway:
            port = int(gateway.url.rpartition(":")[2])
            before = await asyncio.to_thread(served, port)
            shutil.copy(new.key, tmp_path / "key.part")
            (tmp_path / "key.part").replace(pair.key)
            await until(lambda: told("certificate_not_replaced"))
            assert await asyncio.to_thread(served, port) == before
            shutil.copy(new.certificate, tmp_path / "crt.part")
            (tmp_path / "crt.part").replace(pair.certificate)
            await until(lambda: told("certificate_replaced"))
            assert await asyncio.to_thread(served, port) == new.certificate.read_text() != before


@pytest.mark.parametrize(
    ("host", "api", "addresses", "warned"),
    [
        ("0.0.0.0", "", {"127.0.0.1"}, "api.host: 0.0.0.0 has no TLS, so the interface is served on 127.0.0.1 alone"),
        ("::", "", {"::1"}, "api.host: :: has no TLS, so the interface is served on ::1 alone"),
        ("0.0.0.0", "plain_http = true", {"0.0.0.0"}, "api.plain_http: passwords and sessions cross the network"),
        ("127.0.0.1", "", {"127.0.0.1"}, ""),
        ("localhost", "", {"127.0.0.1", "::1"}, ""),
    ],
)
def test_a_network_gets_plain_http_only_where_the_site_file_says_so(tmp_path, host, api, addresses, warned):
    path = site(tmp_path, f'host = "{host}"\n{api}')
    told = typed("check", path, **SECRETS)
    assert told.returncode == 0, told.stderr
    assert warned in told.stdout
    assert ("warning: api" in told.stdout) is bool(warned)
    if "plain_http" not in api and warned:
        assert "plain_http = true" in told.stdout
        assert "[api.tls]" in told.stdout
    with RunningGateway(tmp_path, "--data", tmp_path / "data", **SECRETS) as gateway:
        port = gateway.serves()
        listening = subprocess.run(
            ["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True
        ).stdout
        found = {line.split()[3].rpartition(":")[0].strip("[]") for line in listening.splitlines()}
        assert found <= addresses
        assert found


def test_a_certificate_that_has_ended_is_told_by_check(tmp_path):
    write_pair(tmp_path, days=-1)
    path = site(tmp_path, '[api.tls]\ncertificate = "served.crt"\nkey = "served.key"\n')
    told = typed("check", path, **SECRETS)
    assert told.returncode == 0
    assert "served.crt ended on" in told.stdout


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        (lambda pair: pair.certificate.unlink(), "cannot be read: No such file or directory"),
        (lambda pair: pair.certificate.write_text("hello"), "is not a certificate in PEM form"),
        (lambda pair: pair.key.chmod(0o644), "may be read by everybody; make it mode 0600"),
        (lambda pair: shutil.copy(write_pair(pair.key.parent, stem="x").key, pair.key), "does not belong to"),
    ],
    ids=["missing", "no certificate", "open key", "another's key"],
)
def test_a_certificate_that_cannot_be_used_is_told_by_check_and_stops_no_gateway(tmp_path, spoilt, words):
    pair = write_pair(tmp_path)
    path = site(tmp_path, '[api.tls]\ncertificate = "served.crt"\nkey = "served.key"\n')
    assert "warning: api" not in typed("check", path, cwd=tmp_path.parent, **SECRETS).stdout
    spoilt(pair)
    told = typed("check", path, **SECRETS)
    assert told.returncode == 0
    assert words in told.stdout
    assert "until this is fixed the interface is not served" in told.stdout
    with RunningGateway(tmp_path, "--data", tmp_path / "data", **SECRETS) as gateway:
        assert words in gateway.hears(r'"error": "([^"]*)", .*"event": "interface_not_served"')
        gateway.hears("gateway_started")
        assert gateway.end() == 0


@pytest.fixture
async def encrypted(open_gateway, tmp_path, monkeypatch):
    monkeypatch.setattr(served_certificate, "LOOK_SECONDS", 0.05)
    async with open_gateway(tls=write_pair(tmp_path)) as gateway:
        yield gateway


async def test_a_handshake_that_never_ends_is_closed_and_keeps_nobody_out(encrypted, monkeypatch):
    monkeypatch.setattr("drivers.listening.places.HEAD_SECONDS", 0.5)
    port = int(encrypted.url.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with ClientSession() as client, client.get(f"{encrypted.url}/health/live", ssl=trusting) as answer:
        assert answer.status == 200
    async with asyncio.timeout(30):
        for reader, writer in silent:
            assert await reader.read() == b""
            writer.close()
