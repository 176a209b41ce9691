"""Serving: a taken port, a graceful end, and what is no HTTP."""

import asyncio
import contextlib
import gzip
import json
import re
import socket

import pytest
import structlog
from aiohttp import ClientSession, UnixConnector, web
from aiohttp.http_parser import DeflateBuffer
from waiting import until

from drivers.listening.addresses import is_this_machine
from drivers.listening.http import HttpPlaces
from drivers.listening.places import Places
from gateway.runtime.clock import SystemClock
from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from gateway.web.families import Route
from gateway.web.http.errors import success
from gateway.web.http.server import BOUNDS, PLACES, serve
from gateway.web.operation import OPEN, Operation
from gateway.web.status.page_files import STATIC


async def test_a_taken_port_is_told_tried_again_and_the_local_socket_served_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.web.http.server.SERVE_AGAIN_SECONDS", 0.01)

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/", hello)
    monotonic = SystemClock().monotonic
    app[PLACES] = HttpPlaces(
        Places(bounds=BOUNDS, monotonic=monotonic, is_configured=is_this_machine), monotonic=monotonic
    )
    faults, ports = asyncio.Queue(), asyncio.Queue()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        serving = asyncio.get_running_loop().create_task(
            serve(
                app,
                host="127.0.0.1",
                port=port,
                started=ports.put_nowait,
                failed=faults.put_nowait,
                run_folder=tmp_path,
            )
        )
        assert (await faults.get()).startswith(f"cannot serve on 127.0.0.1 port {port}: ")
        connector = UnixConnector(str(tmp_path / INTERFACE_SOCKET))
        async with ClientSession(connector=connector) as client, client.get("http://localhost/") as answer:
            assert await answer.text() == "here"
    assert await ports.get() == port
    async with ClientSession() as client, client.get(f"http://127.0.0.1:{port}/") as answer:
        assert await answer.text() == "here"
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert not (tmp_path / INTERFACE_SOCKET).exists()


async def test_a_request_under_way_is_answered_at_the_end(open_gateway):
    entered, stopping = asyncio.Event(), asyncio.Event()

    async def slow(request, caller):
        entered.set()
        await stopping.wait()
        return success(done=True)

    async with open_gateway((Route(Operation("GET", "/slow", OPEN), slow),)) as gateway:
        asking = asyncio.get_running_loop().create_task(gateway.call("/slow", method="GET", user=""))
        await entered.wait()
        gateway.stop()
        asyncio.get_running_loop().call_later(0.1, stopping.set)  # the server ends meanwhile
        assert await asking == (200, {"success": True, "done": True})


async def test_the_end_does_not_wait_for_a_body_that_was_refused(open_gateway, monkeypatch):
    monkeypatch.setattr("gateway.web.http.server.SHUTDOWN_SECONDS", 3600)
    async with open_gateway() as gateway, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
        session = (await gateway.sign_in())["SessionID"]
        head = f"POST /v1/device/list HTTP/1.1\r\nHost: localhost\r\nSessionID: {session}\r\n"
        writer.write(f"{head}Content-Length: {2 * 1024 * 1024}\r\n\r\n".encode() + b"x" * 1024)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
        gateway.stop()
        await reader.read()
        writer.close()


async def test_whoever_leaves_amid_an_answer_is_no_failure(open_gateway):
    began = asyncio.Event()

    async def long(request, caller):
        answer = web.StreamResponse()
        await answer.prepare(request)
        began.set()
        while True:
            await answer.write(bytes(100_000))
            await asyncio.sleep(0)

    async with open_gateway((Route(Operation("GET", "/long", OPEN), long),)) as gateway:
        with structlog.testing.capture_logs() as told:
            host, port = gateway.url.removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await began.wait()
            writer.transport.abort()
            await until(lambda: told)
        assert told == [{"event": "caller_left", "log_level": "debug", "method": "GET", "path": "/long"}]


async def test_an_answer_that_fails_half_way_is_cut_and_nothing_put_behind_it(open_gateway):
    async def broken(request, caller):
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"the first half")
        raise RuntimeError("the disk is gone")

    async with open_gateway((Route(Operation("GET", "/broken", OPEN), broken),)) as gateway:
        with structlog.testing.capture_logs() as told:
            host, port = gateway.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /broken HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                async with asyncio.timeout(20):
                    while got := await reader.read(1000):
                        answer += got
            writer.close()
        assert b"success" not in answer
        assert b"\r\n0\r\n" not in answer  # the end of a whole one
        assert [entry["event"] for entry in told] == ["request_failed"]


async def test_a_small_body_that_would_come_to_much_is_not_unpacked(gateway, monkeypatch):
    """By anybody, without a session, nor behind the answer."""
    packed = gzip.compress(bytes(100_000_000))
    host, port = gateway.url.removeprefix("http://").split(":")
    unpacked = []
    monkeypatch.setattr(DeflateBuffer, "feed_data", lambda _, chunk: unpacked.append(chunk))
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
        + f"Content-Length: {len(packed)}\r\n\r\n".encode()
    )
    writer.write(packed)
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 415 "), answer
    assert answer.endswith(b'"the body must not be compressed"}')
    assert not unpacked


@pytest.mark.parametrize(
    ("path", "length"), [("/v1/auth/login", 10**12), ("/v1/device/list", 1024 * 1024 + 1), ("/v1/auth/oauth2", 10**18)]
)
async def test_a_huge_body_is_refused_before_it_comes(gateway, path, length):
    session = (await gateway.sign_in())["SessionID"]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nSessionID: {session}\r\nContent-Length: {length}\r\n"
    for expecting in ("", "Expect: 100-continue\r\n"):
        writer.write(f"{head}{expecting}\r\n".encode())
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert answer.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 404 ")), answer
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
    writer.close()


@pytest.mark.parametrize("name", ["a" * 300, "a" * 4000, "%00", "..%2findex.html", "nothing.js"])
async def test_a_file_that_the_page_does_not_have_is_not_found(gateway, name):
    status, answer = await gateway.call(f"/status/static/{name}", method="GET", user="")
    assert (status, answer) == (404, {"success": False, "error": "no such operation"})


async def test_a_wrong_address_sends_browsers_alone_elsewhere_and_within_the_page(gateway):
    for path, place in (
        ("/status/health/", "/status/health"),
        ("/status/nothing", "/status/?unknown"),
        ("/status///elsewhere.example/", "/status///elsewhere.example"),
        ("/status/%0d%0aSet-Cookie:%20a/", "/status/%0D%0ASet-Cookie:%20a"),
    ):
        url, visit = f"{gateway.url}{path}", {"Accept": "text/html,*/*"}
        async with gateway.client.get(url, headers=visit, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, place)
        async with gateway.client.get(url, allow_redirects=False) as answer:
            assert (answer.status, await answer.json()) == (404, {"success": False, "error": "no such operation"})


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/device/list"), ("GET", "/health/live")])
async def test_an_unknown_expectation_is_refused_in_the_envelope(gateway, method, path):
    async with gateway.client.request(method, gateway.url + path, headers={"Expect": "wonders"}) as answer:
        assert answer.status == 417
        assert (await answer.json())["success"] is False


async def test_a_body_may_say_that_it_is_not_compressed(gateway):
    headers = {**await gateway.sign_in(), "Content-Encoding": "identity"}
    async with gateway.client.post(f"{gateway.url}/v1/device/list", data=b"{}", headers=headers) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"SessionID: \xff\xfe\xe9",
        b"Cookie: session=\xc3\xa9",
        b"Authorization: Bearer \xf0\x28",
        b"Cookie: ;;=;session",
    ],
)
async def test_headers_that_are_no_text_are_no_session(gateway, head):
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/device/list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n"
        + head
        + b"\r\n\r\n{}"
    )
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    assert b"authentication required" in answer or answer.startswith(b"HTTP/1.1 400"), answer
    assert b"Traceback" not in answer


async def test_connections_are_bounded_and_room_comes_back(gateway):
    port = int(gateway.url.rpartition(":")[2])
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(129)]
    held[-1][1].write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(30):
        assert (await held[-1][0].read()).startswith(b"HTTP/1.1 503 ")
        for _, writer in held:
            writer.close()

    async def is_let_in():
        return (await gateway.call("/health/live", method="GET", user=""))[0] == 200

    await until(is_let_in)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_http_gets_one_plain_answer(gateway, sent, caplog):
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0], answer
    assert b"Server: edge-gateway" in head
    assert b"aiohttp" not in answer
    assert json.loads(body) == {"success": False, "error": "the request could not be read as HTTP"}
    assert caplog.records == []


async def test_the_page_has_all_its_modules_in_one_script_and_its_files_are_compressed_and_kept(gateway):
    asked = {"Accept-Encoding": "gzip"}
    async with gateway.client.get(f"{gateway.url}/status/", headers=asked) as answer:
        document = await answer.text()
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert re.findall(r'src="/status/static/([a-z_]+\.js)"', document) == ["load.js", "page.js"]
    for headers, encoding in ((asked, "gzip"), ({"Accept-Encoding": "identity"}, None)):
        url = f"{gateway.url}/status/static/page.js"
        async with gateway.client.get(url, headers=headers) as answer:
            assert answer.headers.get("Content-Encoding") == encoding
            script = await answer.text()
            for module in STATIC.glob("[!l]*.js"):
                assert f"const {module.stem}_js = " in script
            tag = answer.headers["ETag"]
        async with gateway.client.get(url, headers={**headers, "If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
