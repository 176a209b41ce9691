"""Hostile answers of central, or of a server in its place: calls end, lanes go on, nothing is kept or followed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import time
import tracemalloc
import zlib
from itertools import product

import pytest
from set_machine import PushedClock, SetClock

from gateway.central.client.answers import CentralBusy, CentralFailed
from gateway.central.client.lists import ListReader, PageSize, Tally
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.record_match import lookup_of

MEGABYTE = 1024 * 1024
SESSION = {"success": True, "session": "abc", "user": {"mfa_enabled": False}}


def answer(body, *heads, status="200 OK", length=None):
    """An answer over HTTP/1.1."""
    body = body if isinstance(body, bytes) else body.encode()
    length = (f"Content-Length: {len(body) if length is None else length}",) if length != "" else ()
    return "\r\n".join([f"HTTP/1.1 {status}", *heads, *length, "", ""]).encode() + body


def chunked(*chunks, ended=True):
    body = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return answer(body + (b"0\r\n\r\n" if ended else b""), "Transfer-Encoding: chunked", length="")


GOOD = '{"success": true, "devices": [], "count": 0}'
TEXTS = {
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "a number": "1",
    "a text": '"yes"',
    "a page": "<html><body>" + "hello " * 100 + "</body></html>",
    "bytes": b"\x00\xff\xfe" * 100,
    "UTF-16": GOOD.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "half": GOOD[:20],
    "twice": GOOD * 2,
    "more behind it": GOOD + "x",
    "single quotes": GOOD.replace('"', "'"),
    "a comma too many": GOOD[:-1] + ",}",
    "a comment": GOOD + " // done",
    "NaN": '{"success": true, "count": NaN}',
    "Infinity": '{"success": true, "count": -Infinity}',
    "1e999": '{"success": true, "count": 1e999}',
    "5,000 digits": '{"success": true, "count": ' + "9" * 5000 + "}",
    "half a letter": '{"success": true, "x": "\\ud800"}',
    "half a name": '{"success": true, "\\udfff": 1}',
    "control": '{"success": true, "x": "\x01"}',
    "a wrong escape": '{"success": true, "x": "\\q"}',
    "deep": '{"success": true, "x": ' + "[" * 5000 + "]" * 5000 + "}",
    "deep and long": '{"success": true, "x": ' + '{"a":' * 200_000 + "1" + "}" * 200_000 + "}",
    "many": '{"success": true, "devices": [' + "{}," * 500_000 + "{}]}",
    "many names": "{" + ",".join(f'"{n}": 1' for n in range(100_000)) + "}",
    "success as text": '{"success": "true"}',
    "success as number": '{"success": 1}',
    "success as null": '{"success": null}',
    "success as a list": '{"success": [true]}',
    "success and an error": '{"success": true, "error": "no"}',
    "an error that is a list": '{"success": false, "error": ["no"]}',
    "an error that is an object": '{"success": false, "error": {"message": "no"}}',
    "an endless error": '{"success": false, "error": "' + "no " * 300_000 + '"}',
    "an error of many parts": '{"success": false, "error": [' + '"no",' * 19_000 + '"no"]}',
    "an empty object": "{}",
}
STATUSES = ("201 Created", "401 Unauthorized", "404 Not Found", "500 Internal Server Error")
ALSO_WITH_THESE = ("nothing", "a page", "bytes", "half", "deep", "success as text", "an error of many parts")
ANSWERS = {
    **{f"200 OK: {name}": answer(text) for name, text in TEXTS.items()},
    **{f"{status}: {name}": answer(TEXTS[name], status=status) for name, status in product(ALSO_WITH_THESE, STATUSES)},
    "no content": answer("", status="204 No Content", length=""),
    "not modified": answer("", status="304 Not Modified", length=""),
    "unknown success": answer(GOOD, status="299 Odd", length=5),
    "status 999": answer(GOOD, status="999 Odd"),
    "status 99": answer(GOOD, status="99 Odd"),
    "no status": b"\r\n\r\n" + GOOD.encode(),
    "no HTTP": GOOD.encode(),
    "HTTP/9": answer(GOOD).replace(b"HTTP/1.1", b"HTTP/9.9"),
    "too short": answer(GOOD, length=10_000),
    "too long": answer(GOOD, length=3),
    "negative length": answer(GOOD, length=-1),
    "huge length": answer(GOOD, length=10**30),
    "a length that is none": answer(GOOD, length="many"),
    "two lengths": answer(GOOD, "Content-Length: 3"),
    "chunks without end": chunked(GOOD.encode(), ended=False),
    "a chunk without size": answer(b"xyz\r\n", "Transfer-Encoding: chunked", length=""),
    "a huge chunk": answer(b"ffffffffffffffff\r\n{}", "Transfer-Encoding: chunked", length=""),
    "a chunk longer than it says": answer(b"2\r\n{}{}{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked", length=""),
    "chunks and a length": answer(b"2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
    "tiny chunks": chunked(*[b" "] * 2000, GOOD.encode(), ended=False),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X-More: yes\r\n" * 20_000,
    "a long line": b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 500_000,
    "a line without end": b"HTTP/1.1 200 " + b"O" * 500_000,
    "a head with a zero": b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n",
    "packed, but is not": answer(GOOD, "Content-Encoding: gzip"),
    "br": answer(b"\x8b\x00\x80{}\x03", "Content-Encoding: br"),
    "zstd": answer(b"\x28\xb5\x2f\xfd\x04\x00", "Content-Encoding: zstd"),
    "an unknown packing": answer(gzip.compress(b"x"), "Content-Encoding: magic"),
    "packed, cut off": answer(gzip.compress(GOOD.encode())[:-12], "Content-Encoding: gzip"),
    "more than is read": answer(b"{" + b" " * (3 * MEGABYTE) + b"}"),
    "nothing and closed": b"",
    "only 100": b"HTTP/1.1 100 Continue\r\n\r\n",
    "many 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 200,
    "101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + GOOD.encode(),
    "103": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n",
}


class Hostile:
    """Signs everybody in, or answers `login`; answers all else with the same bytes, which need not be HTTP."""

    def __init__(self):
        self.raw = b""
        self.login = answer(json.dumps(SESSION))
        self.closes = False
        self.seen = []

    async def __call__(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:")), 0
                )
                await reader.readexactly(length)
                self.seen.append(head)
                if head.startswith("POST /v1/auth/"):
                    writer.write(self.login)
                    continue
                for start in range(0, len(self.raw), 16_384):
                    writer.write(self.raw[start : start + 16_384])
                    await writer.drain()
                if self.closes or not self.raw:
                    break
        writer.close()


@pytest.fixture
async def hostile():
    service = Hostile()
    server = await asyncio.start_server(service, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield service


class Turns:
    """The longest turn of the loop, in CPU seconds of this thread."""

    def __init__(self):
        self.longest = 0.0

    async def run(self):
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - began)


@pytest.fixture
def uncollected():
    """Without the collector, whose time goes by all that the tests have in memory."""
    gc.disable()
    yield
    gc.enable()


async def asked(client, method="POST", path="/v1/device/list"):
    try:
        return await client.call(method, path, {})
    except (CentralRefused, CentralUnavailable) as error:
        return error


@pytest.mark.long("processor time between two turns of the loop")
@pytest.mark.usefixtures("uncollected")
async def test_no_answer_stops_the_loop(hostile, connect, running):
    client = connect(url=hostile.url, timeout_seconds=1.0)
    hostile.closes = True
    slow = {}
    for name, raw in ANSWERS.items():
        hostile.raw = raw
        turns = Turns()
        async with running(turns.run()):
            await asked(client)
        slow[name] = turns.longest
    worst = max(slow, key=slow.get)
    assert slow[worst] < 0.03, f"{worst}: {slow[worst] * 1000:.0f} ms"


async def test_no_answer_escapes(hostile, connect):
    client = connect(url=hostile.url, timeout_seconds=1.0)
    hostile.closes = True
    well = []
    for name, raw in ANSWERS.items():
        hostile.raw = raw
        found = await asked(client)
        if isinstance(found, dict):
            well.append(name)
        else:
            assert len(str(found)) < 600, f"{name}: {str(found)[:700]}"
    assert len(ANSWERS) > 90
    mended = {"NaN", "Infinity", "1e999", "half a letter", "half a name"}
    well = [name for name in well if name.rpartition(": ")[2] not in mended]
    assert set(well) <= {"packed, but is not", "HTTP/9", "too long"}, "none of these says what was asked for"
    hostile.raw = answer(GOOD)
    assert (await asked(client))["success"] is True


@pytest.mark.parametrize("name", ["half a head", "too short", "a chunk without size", "only 100", "chunks without end"])
async def test_what_never_ends_is_ended_in_time(hostile, connect, name):
    client = connect(url=hostile.url, timeout_seconds=0.2)
    hostile.raw = ANSWERS[name]
    async with asyncio.timeout(20):
        assert isinstance(await asked(client), CentralUnavailable)


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


LARGE = 64
"""Megabytes of spaces in each bomb, which is made by the test that sends it."""
BOMBS = {
    "gzip": lambda: gzip.compress(b" " * (LARGE * MEGABYTE)),
    "deflate": lambda: zlib.compress(b" " * (LARGE * MEGABYTE)),
    "deflate, raw": lambda: raw_deflate(b" " * (LARGE * MEGABYTE)),
    "gzip in parts": lambda: gzip.compress(b" " * MEGABYTE) * LARGE,
}


@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.usefixtures("uncollected")
async def test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off(hostile, connect, running, what):
    hostile.raw = answer(BOMBS[what](), f"Content-Encoding: {what.split()[0].rstrip(',')}")
    client = connect(url=hostile.url, timeout_seconds=20)
    turns = Turns()
    tracemalloc.start()
    try:
        async with running(turns.run()):
            found = await asked(client)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, CentralFailed)
    assert "larger than" in str(found)
    assert peak < 16 * MEGABYTE
    assert turns.longest < 0.03, f"{turns.longest * 1000:.0f} ms"


async def test_a_packed_answer_is_read(hostile, connect):
    client = connect(url=hostile.url)
    for coding, packed in (("gzip", gzip.compress(GOOD.encode())), ("deflate", zlib.compress(GOOD.encode()))):
        hostile.raw = answer(packed, f"Content-Encoding: {coding}")
        assert await asked(client) == json.loads(GOOD)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("head", ["Location", "URI", "Refresh"])
async def test_the_session_is_taken_nowhere_else(hostile, connect, status, head):
    elsewhere = []

    async def reached(_, writer):
        elsewhere.append(1)
        writer.close()

    server = await asyncio.start_server(reached, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        hostile.raw = answer(GOOD, f"{head}: http://127.0.0.1:{port}/v1/device/list", status=status)
        client = connect(url=hostile.url)
        assert isinstance(await asked(client), CentralUnavailable)
        assert isinstance(await asked(client, "PUT", "/v1/entry"), CentralUnavailable)
    assert elsewhere == []


async def test_nothing_of_an_answer_is_sent_back(hostile, connect):
    hostile.raw = answer(GOOD, "Set-Cookie: session=theirs; Path=/", "Set-Cookie: SessionID=theirs")
    client = connect(url=hostile.url)
    for _ in range(3):
        await asked(client)
    assert not any("cookie" in head.lower() or "theirs" in head for head in hostile.seen)


@pytest.mark.parametrize(
    "login",
    [
        answer(b"{" + b" " * (3 * MEGABYTE) + b"}"),
        answer('{"success": false, "error": "database away"}', status="500 Internal Server Error"),
        answer('{"success": true}'),
    ],
    ids=["too large", "a failure", "no session"],
)
async def test_central_is_away_while_nobody_can_sign_in(hostile, connect, login):
    """Nothing goes to central then, so it is no matter of one list, and no wrong password of earlier either."""
    clock = PushedClock()
    client = connect(url=hostile.url, clock=clock)
    hostile.login = answer('{"error": "wrong password"}', status="404 Not Found")
    assert isinstance(await asked(client), CentralRefused)
    assert (client.state.reachable, client.state.sign_in_refused != "") == (True, True)
    hostile.login, clock.pushed = login, 120
    error = await asked(client)
    assert (type(error), error.sent) == (CentralUnavailable, False)
    assert (client.state.reachable, client.state.sign_in_refused) == (False, "")
    hostile.login, hostile.raw = answer(json.dumps(SESSION)), answer(GOOD)
    assert await asked(client) == json.loads(GOOD)
    assert client.state.reachable


@pytest.mark.parametrize("said", ['{"error": "authentication required"}', "{}", '{"success": false}'])
async def test_whoever_always_wants_a_sign_in_is_not_signed_in_to_for_ever(hostile, connect, said):
    hostile.raw = answer(said, status="401 Unauthorized")
    client = connect(url=hostile.url)
    for _ in range(5):
        assert isinstance(await asked(client), CentralRefused)
    sign_ins = sum(head.startswith("POST /v1/auth/login") for head in hostile.seen)
    assert sign_ins <= 6, "one for each, and the first"


ASKED_TO_WAIT = {
    "": 5.0,
    "Retry-After: 0": 0.0,
    "Retry-After: 20": 20.0,
    "Retry-After: 1e9": 5.0,
    "Retry-After: -3": 5.0,
}
ASKED_TO_WAIT |= {
    "Retry-After: 61": 60.0,
    f"Retry-After: {'9' * 5000}": 60.0,
    "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT": 5.0,
}


@pytest.mark.parametrize("head", ASKED_TO_WAIT, ids=lambda head: head[:24] or "no header")
async def test_an_operation_rests_as_long_as_a_busy_central_asks(hostile, connect, head):
    clock = SetClock()
    client = connect(url=hostile.url, clock=clock, timeout_seconds=20)
    hostile.raw = answer('{"success": false, "error": "too many"}', *([head] if head else ()), status="429 Too Many")
    assert isinstance(await asked(client), CentralBusy)
    hostile.raw = answer(GOOD)
    if ASKED_TO_WAIT[head]:
        clock.seconds += ASKED_TO_WAIT[head] - 0.5
        sent = len(hostile.seen)
        resting = await asked(client)
        assert isinstance(resting, CentralBusy)
        assert not resting.sent
        assert len(hostile.seen) == sent, "nothing is sent while the operation rests"
        assert isinstance(await asked(client, path="/v1/camera/list"), dict), "others go on"
    clock.seconds += 0.6
    assert isinstance(await asked(client), dict)


async def test_a_busy_central_is_not_asked_for_smaller_pages(hostile, connect):
    client = connect(url=hostile.url, timeout_seconds=20)
    hostile.raw = answer('{"success": false, "error": "too many"}', status="429 Too Many Requests")
    reader = ListReader(client=client, lookup=lookup_of("device"), tally=Tally("devices"), size=PageSize())
    with pytest.raises(CentralBusy):
        await anext(reader.pages())
    assert sum(head.startswith("POST /v1/device/list") for head in hostile.seen) == 1


@pytest.mark.parametrize("status", ["500 Internal Server Error", "403 Forbidden", "400 Bad Request", "429 Busy"])
@pytest.mark.parametrize("to", ["/v1/auth/login", "/v1/auth/mfa", "/v1/device/list"])
async def test_a_central_that_repeats_requests_in_its_errors_gets_no_secret_into_ours(connect, status, to):
    """An error goes into events, the page, the fleet and the broker. A password at its cut end counts too."""
    secrets, shown = {"right  horse", "abcdefgh"}, []

    async def repeat(reader, writer):
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length: ")[2].partition("\r")[0] or 0)
                body = (await reader.readexactly(length)).decode()
                if f" {to} " in head:
                    secrets.add(json.loads(body).get("token", "right  horse"))
                    said = json.dumps({"success": False, "error": f"{'x' * 150} {head} {body} {head}"})
                    writer.write(answer(said, status=status))
                else:
                    user = {"mfa_enabled": "mfa" in to}
                    writer.write(answer(json.dumps({"success": True, "session": "abcdefgh", "user": user})))

    server = await asyncio.start_server(repeat, "127.0.0.1", 0)
    async with server:
        url = "http://{}:{}".format(*server.sockets[0].getsockname())
        client = connect(url=url, password="right  horse", totp_secret="JBSWY3DPEHPK3PXP")
        for call in (client.call("POST", "/v1/device/list", {}), client.call_for("POST", to, {}, token="abcdefgh")):
            with pytest.raises((CentralRefused, CentralUnavailable)) as refused:
                await call
            shown += [str(refused.value), getattr(refused.value, "said", ""), client.state.last_error]
        await client.close()
    parts = {secret[:length] for secret in secrets for length in range(6, len(secret) + 1)}
    assert not [part for part in parts for text in shown if part in text]
    assert any("***" in text or "xxx" in text for text in shown)
