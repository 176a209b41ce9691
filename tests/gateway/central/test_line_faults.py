"""Faults between the gateway and central in words for people, with real sockets."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import threading

import aiohttp
import pytest
from free_ports import free_port

from gateway.central.client.connections import line_words
from gateway.domain.errors import CentralUnavailable

_LIBRARY = ("Errno", "ContentLength", "ssl:default", "Can not write", "Connect call", "aiohttp", "object", "None")


async def refuses(reader, writer):
    writer.close()


async def cuts(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{")
    await writer.drain()
    writer.close()


async def babbles(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    await writer.drain()
    writer.close()


async def greets(reader, writer):
    writer.write(b"220 mail.example ESMTP\r\n")
    await reader.read(16)
    writer.close()


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        (refuses, "the connection broke before an answer was there"),
        (cuts, "the answer was cut off in the middle"),
        (babbles, "what answers at 127.0.0.1 does not speak HTTP as it should"),
    ],
)
async def test_a_line_that_breaks(connect, habit, words):
    server = await asyncio.start_server(habit, "127.0.0.1", 0)
    async with server:
        client = connect(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(CentralUnavailable) as raised:
            await client.look()
    assert str(raised.value) == f"GET /: {words}"
    assert client.state.last_error == words, "the same for each request"


async def test_nobody_is_there(connect):
    client = connect(url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(
        CentralUnavailable, match=r"^GET /: nothing answers at 127\.0\.0\.1: the connection was refused$"
    ):
        await client.look()


async def test_a_name_that_is_not_known(connect, monkeypatch):
    def resolve(host, *_, **__):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    client = connect(url="http://central.example:8080")
    with pytest.raises(CentralUnavailable) as raised:
        await client.look()
    assert "the name central.example is not known: check its spelling and this machine's DNS" in str(raised.value)


async def test_a_name_server_that_never_answers_is_not_waited_for(connect, monkeypatch):
    over = threading.Event()

    def resolve(host, *_, **__):
        over.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    client = connect(url="http://central.example:8080", timeout_seconds=0.2)
    try:
        with pytest.raises(CentralUnavailable):
            await client.look()
        assert not over.is_set()
    finally:
        over.set()


async def test_a_plain_central_where_tls_is_expected(connect):
    server = await asyncio.start_server(greets, "127.0.0.1", 0)
    async with server:
        client = connect(url=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(CentralUnavailable, match="does not speak TLS as it should") as raised:
            await client.look()
    assert not any(word in str(raised.value) for word in _LIBRARY)


def faults():
    key = aiohttp.client_reqrep.ConnectionKey("c", 443, True, True, None, None, None)
    unproven = ssl.SSLCertVerificationError(1, "x")
    unproven.verify_message = "certificate has expired"
    for error in (
        socket.gaierror(-2, "Name or service not known"),
        OSError(errno.ENETUNREACH, "Connect call failed ('2001::1', 443)"),
        OSError(0, "odd"),
        ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"),
        unproven,
    ):
        yield aiohttp.ClientConnectorError(key, error)
        yield error
    yield aiohttp.ClientConnectorCertificateError(key, unproven)
    yield aiohttp.ClientConnectorCertificateError(key, ValueError("no match"))
    yield aiohttp.ClientOSError(errno.EPIPE, "Can not write request body for http://c/")
    yield aiohttp.ClientOSError(None, "Can not write request body for http://c/")
    yield aiohttp.ServerDisconnectedError()
    yield aiohttp.ConnectionTimeoutError()
    yield aiohttp.InvalidURL("http:///")


@pytest.mark.parametrize("error", tuple(faults()), ids=repr)
def test_no_word_of_the_library_is_told(error):
    said = line_words(error, "central.example")
    assert 20 < len(said) < 160
    assert not any(word in said for word in _LIBRARY), said


def test_what_a_certificate_lacks_is_told():
    key = aiohttp.client_reqrep.ConnectionKey("c", 443, True, True, None, None, None)
    unproven = ssl.SSLCertVerificationError(1, "x")
    unproven.verify_message = "certificate has expired"
    said = line_words(aiohttp.ClientConnectorCertificateError(key, unproven), "central.example")
    assert said == "central.example does not prove that it is central: certificate has expired"
