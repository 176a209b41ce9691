"""A webhook is no way to ask this machine or its neighbours."""

from __future__ import annotations

import socket
from ipaddress import ip_network

import pytest

from gateway.domain.errors import ReceiverRefused
from gateway.webhooks import client as client_module
from gateway.webhooks.client import ReceiverClient, check_address, check_url
from simulation.far_ends.http_device import on_loopback

BODY = b'{"id": "msg_1"}'
LAN = (ip_network("192.168.1.0/24"),)
INNER = (
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.2.1", "169.254.169.254", "100.64.0.1",
    "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1", "::", "::1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
    "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe",
)  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_addresses_that_are_not_public_are_refused(address):
    with pytest.raises(ReceiverRefused):
        check_address(address, allowed=LAN, encrypted=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_sent_to_encrypted_alone(address):
    check_address(address, allowed=(), encrypted=True)
    with pytest.raises(ReceiverRefused, match="only https"):
        check_address(address, allowed=LAN, encrypted=False)


@pytest.mark.parametrize("address", ["192.168.1.20", "::ffff:192.168.1.20"])
def test_a_listed_neighbour_is_sent_to_also_unencrypted(address):
    check_address(address, allowed=LAN, encrypted=False)


@pytest.mark.parametrize(
    "url",
    [
        "", "ftp://example.com", "https://", "example.com/hook", "https://user:pass@example.com/", "http://example.com/",
        "https://127.0.0.1/", "https://[::1]/hook", "https://10.0.0.1:8443/", "https://example.com:0/",
        "https://example.com:99999/", "https://exa mple.com/", "https://example.com/\nHost: x", "https://" + "a" * 2000,
        "file:///etc/passwd", "https://\u0435xample.com/", "https://example.com/hook#part", "https://example.com/#",
    ],
)  # fmt: skip
def test_urls_that_cannot_be_receivers_are_refused_without_repeating_them(url):
    with pytest.raises(ReceiverRefused) as refusal:
        check_url(url, allowed=())
    assert "pass" not in str(refusal.value)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "gate.localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1.",
     "10.1", "0", "0xa9fea9fe"],
)  # fmt: skip
def test_an_address_by_another_name_is_refused_at_once(host):
    with pytest.raises(ReceiverRefused, match="is not on the public internet"):
        check_url(f"https://{host}/hook", allowed=())
    check_url(f"https://{host}/hook", allowed=(ip_network("0.0.0.0/0"),))


@pytest.mark.parametrize("host", ["1.2.3.4.5", "999.1", "0x1ffffffff"])
def test_numbers_that_are_no_address_are_refused(host):
    with pytest.raises(ReceiverRefused, match="cannot be understood"):
        check_url(f"https://{host}/hook", allowed=())


@pytest.mark.parametrize("host", ["cafe.de", "a.bc", "localhost.example.com", "8.8.8.8", "134744072", "x1.test"])
def test_names_and_public_addresses_may_be_registered(host):
    check_url(f"https://{host}/hook", allowed=())


async def test_a_name_is_resolved_once_and_one_inner_address_is_enough_to_refuse(monkeypatch, receiving):
    receiver = await receiving()
    port = int(receiver.url.split(":")[2].split("/")[0])
    asked: list[str] = []

    def resolve(host, port, *_):
        asked.append(host)
        addresses = {"mixed.example": ("8.8.8.8", "127.0.0.1"), "rebound.example": ("127.0.0.1",)}
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses[host]]

    monkeypatch.setattr(client_module.socket, "getaddrinfo", resolve)
    client = ReceiverClient(allowed=(), timeout_seconds=2)
    for host in ("mixed.example", "rebound.example"):
        answer = await client.send(f"https://{host}:{port}/hook", headers={}, body=BODY)
        assert "127.0.0.1 is not on the public internet" in answer.fault
    assert asked == ["mixed.example", "rebound.example"]
    allowing = ReceiverClient(allowed=(ip_network("127.0.0.1/32"),), timeout_seconds=2)
    answer = await allowing.send(f"http://rebound.example:{port}/hook", headers={}, body=BODY)
    assert answer.status == 204
    assert len(asked) == 3
    assert receiver.got[0].headers["Host"] == f"rebound.example:{port}"
    client.close()
    allowing.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "127.1", "localhost"])
async def test_literals_of_this_machine_are_refused_in_every_form(host, receiving):
    receiver = await receiving()
    port = receiver.url.split(":")[2].split("/")[0]
    client = ReceiverClient(allowed=(), timeout_seconds=2)
    answer = await client.send(f"https://{host}:{port}/hook", headers={}, body=BODY)
    assert answer.status == 0
    assert not receiver.got
    client.close()


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    import ssl
    import subprocess

    from aiohttp import web

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    app = web.Application()

    async def take(_request):
        return web.Response(status=204)

    app.router.add_post("/hook", take)
    allowed = (ip_network("127.0.0.1"),)
    client, knowing = ReceiverClient(allowed=allowed), ReceiverClient(allowed=allowed, ca_file=str(certificate))
    async with on_loopback(app, tls=context) as port:
        url = f"https://127.0.0.1:{port}/hook"
        assert "certificate is not trusted" in (await client.send(url, headers={}, body=BODY)).fault
        assert (await knowing.send(url, headers={}, body=BODY)).status == 204
    client.close()
    knowing.close()
