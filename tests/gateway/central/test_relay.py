"""Carrying requests to central: the line's own headers stay on their line, and nothing is unbounded."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from multidict import CIMultiDict
from scripted_central import said, scripted_central, silent
from waiting import until

from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.relay import CentralRelay, RelayLimits, end_to_end
from gateway.domain.relaying import NotRelayed, RelayedRequest, RelayRefusal
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central import Central

SMALL = RelayLimits(
    at_once=3, at_once_of_one=2, body_bytes=1_000_000, connect_seconds=30.0, idle_seconds=0.3, whole_seconds=2.0
)
PATIENT = replace(SMALL, idle_seconds=30.0, whole_seconds=30.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def relaying(url: str, limits: RelayLimits = PATIENT) -> AsyncIterator[CentralRelay]:
    client = CentralClient(url=url, account=GatewayAccount("gateway", "right horse"), clock=SystemClock())
    relay = CentralRelay(client=client, url=url, limits=limits)
    running = asyncio.get_running_loop().create_task(relay.run())
    try:
        yield relay
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()


def asked(body: AsyncIterator[bytes] | None = None, *, length: int | None = None, **changed) -> RelayedRequest:
    wanted = {
        "method": "POST", "path": "/v1/companies/list", "query": "", "headers": (("Content-Type", "application/json"),),
        "token": "t0ken", "owner": "ada", "body": body, "length": length,
    }  # fmt: skip
    return RelayedRequest(**(wanted | changed))


@asynccontextmanager
async def hanging(url: str) -> AsyncIterator[None]:
    """Meanwhile somebody at this address takes connections, and says nothing."""
    callers = []

    async def hang(reader, writer):
        callers.append(writer)
        await reader.read()

    host, port = url.removeprefix("http://").split(":")
    async with await asyncio.start_server(hang, host, int(port)) as server:
        yield
        server.close()
        for caller in callers:
            caller.transport.abort()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def whole(relay: CentralRelay, request: RelayedRequest) -> tuple[int, bytes]:
    async with relay.answer(request) as answer:
        return answer.status, b"".join([chunk async for chunk in answer.body])


async def refusal(relay: CentralRelay, request: RelayedRequest) -> RelayRefusal:
    with pytest.raises(NotRelayed) as caught:
        await whole(relay, request)
    return caught.value.refusal


def test_headers_of_the_line_stay_on_it():
    headers = CIMultiDict(
        [("Connection", "close, X-Mine"), ("connection", "ETag"), ("Keep-Alive", "5"), ("TE", "trailers"),
         ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("Proxy-Authorization", "x"), ("Trailer", "X-T"),
         ("X-Mine", "1"), ("ETag", '"e"'), ("Content-Type", "text/csv"), ("Vary", "A"), ("Vary", "B")]
    )  # fmt: skip
    assert end_to_end(headers) == (("Content-Type", "text/csv"), ("Vary", "A"), ("Vary", "B"))


async def test_the_request_is_sent_as_asked_and_once():
    async with scripted_central(said(OK)) as far, relaying(far.url) as relay:
        body = pieces(b'{"a"', b": 1}")
        assert await whole(relay, asked(body, length=8, query="x=%41&y=1")) == (200, b"ok")
        (heard,) = far.heard
        head, _, sent = heard.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert lines[0] == "POST /v1/companies/list?x=%41&y=1 HTTP/1.1"
        assert sent == b'{"a": 1}'
        assert {line.partition(":")[0] for line in lines[1:]} == {
            "Host", "Content-Type", "Accept-Encoding", "Via", "SessionID", "Content-Length", "Connection"
        }  # fmt: skip
        assert "SessionID: t0ken" in lines
        await whole(relay, asked(token="", method="GET", path="/.well-known/oauth-protected-resource"))
        assert b"SessionID" not in far.heard[1]
        assert b"Content-Length" not in far.heard[1]


async def test_nothing_is_sent_a_second_time_when_the_line_breaks():
    async def gone(reader, writer):
        writer.transport.abort()

    async with scripted_central(gone) as far, relaying(far.url) as relay:
        for method in ("GET", "PUT", "POST", "DELETE"):
            assert await refusal(relay, asked(method=method)) is RelayRefusal.LOST
        assert len(far.heard) == 4


async def test_a_body_of_unknown_length_comes_whole(central: Central):
    async with relaying(central.url, RelayLimits()) as relay:
        token = central.sessions.sign_in("gateway", "right horse").token
        content = bytes(range(256)) * 12_000
        form = (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n', content, b"\r\n--x--\r\n"
        )  # fmt: skip
        headers = (("Content-Type", "multipart/form-data; boundary=x"),)
        upload = asked(pieces(*form), method="PUT", path="/v1/document/upload", headers=headers, token=token)
        status, answer = await whole(relay, upload)
        assert status == 200
        assert hashlib.sha256(content).hexdigest().encode() in answer
        status, back = await whole(relay, asked(method="GET", path="/v1/document/1/download", token=token))
        assert (status, back == content) == (200, True)


async def test_a_compressed_answer_is_not_touched():
    packed = b"\x1f\x8b not really"
    raw = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(packed), packed)
    async with scripted_central(said(raw)) as far, relaying(far.url) as relay:
        assert await whole(relay, asked()) == (200, packed)


@pytest.mark.parametrize("length", [None, 1_500_000])
async def test_a_body_that_is_too_large_is_refused(length):
    async with scripted_central(silent) as far, relaying(far.url) as relay:
        body = pieces(*[b"x" * 100_000] * 15)
        assert await refusal(relay, asked(body, length=length)) is RelayRefusal.TOO_LARGE
        assert relay.on_their_way == 0


async def test_an_answer_that_is_too_large_is_not_carried_on():
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 1500000\r\n\r\n" + b"x" * 1_500_000
    async with scripted_central(said(raw)) as far, relaying(far.url) as relay:
        assert await refusal(relay, asked()) is RelayRefusal.NOT_CARRIED


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", RelayRefusal.LOST),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", RelayRefusal.LOST),
        (b"", RelayRefusal.LOST),
        (b"220 mail.example.com ESMTP\r\n\r\n", RelayRefusal.NOT_CARRIED),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", RelayRefusal.NOT_CARRIED),
    ],
)
async def test_an_answer_that_is_none(raw, expected):
    async with scripted_central(said(raw)) as far, relaying(far.url) as relay:
        assert await refusal(relay, asked()) is expected
        assert relay.on_their_way == 0


async def test_silence_ends_in_time_before_the_answer_and_within_it():
    async def half(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await reader.read(-1)

    async def slowly(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not writer.transport.is_closing():
            writer.write(b".")
            await asyncio.sleep(0.1)  # the pace of a slow central

    patient = replace(SMALL, whole_seconds=600.0)  # what is silent is given up before
    for script, limits in ((silent, patient), (half, patient), (slowly, SMALL)):
        async with scripted_central(script) as far, relaying(far.url, limits) as relay:
            assert await refusal(relay, asked()) is RelayRefusal.SILENT
            assert relay.on_their_way == 0


async def test_a_far_end_that_does_not_take_the_body_is_given_up():
    async def deaf(reader, writer):
        await asyncio.Event().wait()

    async with scripted_central(deaf) as far:
        limits = RelayLimits(body_bytes=64_000_000, idle_seconds=0.3, whole_seconds=600)
        async with relaying(far.url, limits) as relay:
            body = pieces(*[b"x" * 1_000_000] * 40)
            assert await refusal(relay, asked(body, length=40_000_000)) is RelayRefusal.SILENT


async def test_an_answer_before_the_body_is_sent_is_an_answer():
    raw = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0.02)  # the pace of a slow caller

    async with scripted_central(said(raw)) as far, relaying(far.url) as relay:
        assert await whole(relay, asked(endless())) == (413, b"no")


@asynccontextmanager
async def told_when_to_answer() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A central that answers each request once the event is set."""
    told = asyncio.Event()

    async def script(reader, writer):
        await told.wait()
        await said(OK)(reader, writer)

    async with scripted_central(script) as far:
        yield far.url, told


async def test_only_so_many_are_on_their_way_and_nobody_has_all_places():
    async with told_when_to_answer() as (url, told), relaying(url) as relay:
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(whole(relay, asked(owner=owner))) for owner in ("ada", "ada", "bruno")]
            await until(lambda: relay.on_their_way >= 3)
            assert await refusal(relay, asked(owner="chloe")) is RelayRefusal.BUSY
            assert await refusal(relay, asked(owner="ada")) is RelayRefusal.BUSY
            told.set()
        assert [task.result() for task in waiting] == [(200, b"ok")] * 3
        assert relay.on_their_way == 0


async def test_the_share_of_one_caller_is_bounded():
    async with told_when_to_answer() as (url, told), relaying(url) as relay, asyncio.TaskGroup() as group:
        waiting = [group.create_task(whole(relay, asked())) for _ in range(2)]
        await until(lambda: relay.on_their_way >= 2)
        assert await refusal(relay, asked()) is RelayRefusal.BUSY
        other = group.create_task(whole(relay, asked(owner="bruno")))
        await until(lambda: relay.on_their_way >= 3)
        told.set()
        assert [await task for task in (*waiting, other)] == [(200, b"ok")] * 3


async def test_a_fault_of_the_body_is_told_as_it_is():
    async def broken() -> AsyncIterator[bytes]:
        yield b"{"
        raise NotRelayed(RelayRefusal.LATE, "the body did not come in time")

    async with scripted_central(silent) as far, relaying(far.url) as relay:
        assert await refusal(relay, asked(broken(), length=100)) is RelayRefusal.LATE


async def test_away_is_known_at_once_and_its_end_is_noticed(central: Central, monkeypatch):
    monkeypatch.setattr("gateway.central.relay.LOOK_AGAIN_SECONDS", 0.1)
    async with relaying(central.url) as relay:
        assert (await whole(relay, asked()))[0] == 500  # its session is not known, but it answers
        await central.stop()
        assert await refusal(relay, asked()) is RelayRefusal.AWAY
        assert relay.away()
        async with hanging(central.url):  # asked, it would be silent
            for _ in range(50):
                assert await refusal(relay, asked()) is RelayRefusal.AWAY
        await central.start()
        await until(lambda: not relay.away())
        assert (await whole(relay, asked()))[0] == 500
