"""HTTPS of the gateway itself: who gets it, with which certificate, and the commands that ask over it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import warnings
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession
from certificates import write_pair
from running_gateway import PASSWORD, give_account, typed
from running_house import at_work
from structlog.testing import capture_logs
from waiting import until

from gateway.web.http import server


def site(folder, api):
    (folder / "site.toml").write_text(f'[site]\nname = "North"\n[api]\nport = 0\n{api}\n')
    return folder / "site.toml"


def trusting(pair):
    """A client's context that trusts this certificate alone."""
    return ssl.create_default_context(cafile=pair.certificate)


def served(port):
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30)


async def command(*words, **environ):
    return await asyncio.to_thread(typed, *words, **environ)


async def test_the_interface_is_served_over_tls_and_commands_find_it_there(tmp_path):
    pair = write_pair(tmp_path)
    site(tmp_path, f'host_names = ["gate.example.com"]\n{pair.section()}')
    give_account(tmp_path / "data")
    async with at_work(tmp_path, tmp_path / "data", {}) as gateway, ClientSession() as client:
        port = await gateway.serves()
        url, named = f"https://127.0.0.1:{port}", {"ssl": trusting(pair), "server_hostname": "gate.example.com"}
        host = {"Host": f"gate.example.com:{port}"}
        async with client.get(f"{url}/health/live", headers=host, **named) as answer:
            assert (await answer.json())["success"] is True
        account = {"username": "chief", "password": PASSWORD}
        async with client.post(f"{url}/v1/auth/login", json=account, headers=host, **named) as answer:
            assert all("; Secure" in cookie for cookie in answer.headers.getall("Set-Cookie"))
        environ = {"EDGE_GATEWAY_PASSWORD": PASSWORD, "SSL_CERT_FILE": str(pair.certificate)}
        told = await command("outbox", "list", "--url", f"https://chief@localhost:{port}", **environ)
        assert (told.returncode, told.stderr) == (0, "")
        assert "central refused nothing" in told.stdout
        with pytest.raises(ClientError):
            await client.get(f"http://127.0.0.1:{port}/health/live")


async def test_a_command_speaks_to_nobody_with_another_certificate(tmp_path):
    (tmp_path / "other").mkdir()
    other, own = write_pair(tmp_path / "other"), write_pair(tmp_path)
    site(tmp_path, other.section())
    async with at_work(tmp_path, tmp_path / "data", {}) as gateway:
        port = await gateway.serves()
        environ = {"EDGE_GATEWAY_PASSWORD": PASSWORD, "SSL_CERT_FILE": str(own.certificate)}
        told = await command("outbox", "list", "--url", f"https://chief@localhost:{port}", **environ)
    assert told.returncode == 1
    assert f"the certificate of localhost:{port} is not trusted: self-signed certificate" in told.stderr
    assert "Traceback" not in told.stderr


async def test_tls_1_1_is_refused(open_gateway, tmp_path):
    pair = write_pair(tmp_path)
    async with open_gateway(tls=pair) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        assert await asyncio.to_thread(handshake, port, pair, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        with pytest.raises(ssl.SSLError, match=r"alert protocol version|EOF occurred"):
            await asyncio.to_thread(handshake, port, pair, ssl.TLSVersion.TLSv1_1)


def handshake(port, pair, version):
    """Speak this version alone; the version that both agree on."""
    context = trusting(pair)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
        return encrypted.version()


async def test_a_replaced_certificate_counts_without_a_restart_and_half_a_pair_does_not(
    open_gateway, tmp_path, monkeypatch
):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)
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
async def test_a_network_gets_plain_http_only_where_the_site_file_says_so(tmp_path, host, api, addresses, warned):
    path = site(tmp_path, f'host = "{host}"\n{api}')
    told = await command("check", path)
    assert told.returncode == 0, told.stderr
    assert warned in told.stdout
    assert ("warning: api" in told.stdout) is bool(warned)
    if "plain_http" not in api and warned:
        assert "plain_http = true" in told.stdout
        assert "[api.tls]" in told.stdout
    async with at_work(tmp_path, tmp_path / "data", {}) as gateway:
        found = listening(await gateway.serves())
    assert found <= addresses
    assert found


def listening(port):
    """Return the addresses at which this port takes connections, as the kernel lists them."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            address, number = local.split(":")
            if (state, int(number, 16)) == ("0A", port):
                words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
                found.add(str(ip_address(b"".join(words))))
    return found


def test_a_certificate_that_has_ended_is_told_by_check(tmp_path):
    write_pair(tmp_path, days=-1)
    path = site(tmp_path, '[api.tls]\ncertificate = "served.crt"\nkey = "served.key"\n')
    told = typed("check", path)
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
async def test_a_certificate_that_cannot_be_used_is_told_by_check_and_stops_no_gateway(tmp_path, spoilt, words):
    pair = write_pair(tmp_path)
    path = site(tmp_path, '[api.tls]\ncertificate = "served.crt"\nkey = "served.key"\n')
    assert "warning: api" not in (await command("check", path, cwd=tmp_path.parent)).stdout
    spoilt(pair)
    told = await command("check", path)
    assert told.returncode == 0
    assert words in told.stdout
    assert "until this is fixed the interface is not served" in told.stdout
    async with at_work(tmp_path, tmp_path / "data", {}) as gateway:
        assert words in (await gateway.tells("interface_not_served"))["error"]


@pytest.fixture
async def encrypted(open_gateway, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)
    async with open_gateway(tls=write_pair(tmp_path)) as gateway:
        yield gateway


async def test_a_handshake_that_never_ends_is_closed_and_keeps_nobody_out(encrypted, monkeypatch):
    monkeypatch.setattr("drivers.listening.places.HEAD_SECONDS", 0.5)
    port = int(encrypted.url.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    async with ClientSession() as client, client.get(f"{encrypted.url}/health/live", ssl=anybody) as answer:
        assert answer.status == 200
    async with asyncio.timeout(30):
        for reader, writer in silent:
            assert await reader.read() == b""
            writer.close()
