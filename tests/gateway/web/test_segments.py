import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from waiting import until

from gateway.domain.errors import NotFoundError
from gateway.web.http import segments as module
from gateway.web.http.files import SEGMENT, as_lasting_file
from gateway.web.http.segments import MOST_OPEN, SegmentFiles


@pytest.fixture
async def served(tmp_path):
    """Files of a folder, as segments at /<name> and as any file at /plain/<name>."""
    files = SegmentFiles(monotonic=time.monotonic)

    async def segment(request):
        try:
            return await files.answer(request, tmp_path / request.match_info["name"])
        except NotFoundError as error:
            raise web.HTTPNotFound from error

    async def plain(request):
        return as_lasting_file(tmp_path / request.match_info["name"], SEGMENT)

    app = web.Application()
    app.router.add_get("/{name}", segment)
    app.router.add_get("/plain/{name}", plain)
    app.on_cleanup.append(files.close)
    async with TestClient(TestServer(app)) as client:
        yield client, files, tmp_path


async def test_a_segment_is_answered_as_any_file_is(served):
    client, _, folder = served
    data = os.urandom(300_000)
    (folder / "1.ts").write_bytes(data)
    for headers in ({}, {"Range": "bytes=10-19"}, {"Range": "bytes=900000-"}, {"If-Modified-Since": "x"}):
        for method in ("GET", "HEAD"):
            for _ in range(2):  # opened, then open already
                ours = await client.request(method, "/1.ts", headers=headers)
                theirs = await client.request(method, "/plain/1.ts", headers=headers)
                assert (ours.status, await ours.read()) == (theirs.status, await theirs.read())
                told, expected = dict(ours.headers), dict(theirs.headers)
                assert told.pop("Date")
                assert expected.pop("Date")
                assert told == expected
    tag = (await client.get("/1.ts")).headers["ETag"]
    assert (await client.get("/1.ts", headers={"If-None-Match": tag})).status == 304
    part = await client.get("/1.ts", headers={"Range": "bytes=5-", "If-Range": tag})
    assert (part.status, await part.read()) == (206, data[5:])


async def test_a_deleted_segment_is_not_found_though_it_was_open(served):
    client, files, folder = served
    (folder / "1.ts").write_bytes(b"footage")
    assert await (await client.get("/1.ts")).read() == b"footage"
    assert files.count == 1
    (folder / "1.ts").unlink()
    assert (await client.get("/1.ts")).status == 404
    assert files.count == 0
    assert (await client.get("/1.ts")).status == 404


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def is_open(path: Path) -> bool:
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if descriptor.readlink() == path:
                return True
    return False


async def test_few_are_open_and_not_for_long(served, monkeypatch):
    client, files, folder = served
    before = open_files()
    for number in range(MOST_OPEN + 10):
        (folder / f"{number}.ts").write_bytes(b"footage")
        assert (await client.get(f"/{number}.ts")).status == 200
    assert files.count == MOST_OPEN
    await files.close(client.app)
    assert files.count == 0
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.05)
    for number in range(5):
        assert (await client.get(f"/{number}.ts")).status == 200
    # the client's connection, and the server's, stay open
    await until(lambda: not files.count and open_files() <= before + 4)


async def test_whoever_receives_slowly_gets_all_of_it_though_it_is_kept_open_no_more(served):
    client, files, folder = served
    data = os.urandom(7_500_000)
    (folder / "1.ts").write_bytes(data)
    reader, writer = await asyncio.open_connection(client.host, client.port, limit=4_096)
    writer.write(b"GET /1.ts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    (folder / "1.ts").unlink()
    await files.close(client.app)
    async with asyncio.timeout(30):
        assert await reader.read(-1) == data
    writer.close()


async def test_who_leaves_in_the_middle_holds_nothing_open(served):
    client, files, folder = served
    (folder / "1.ts").write_bytes(os.urandom(7_500_000))
    reader, writer = await asyncio.open_connection(client.host, client.port, limit=4_096)
    writer.write(b"GET /1.ts HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await files.close(client.app)
    assert is_open(folder / "1.ts"), "it is being sent"
    writer.transport.abort()
    await until(lambda: not is_open(folder / "1.ts"))
    assert (await client.get("/1.ts")).status == 200


async def test_a_large_one_is_sent_and_not_kept(served, monkeypatch):
    client, files, folder = served
    monkeypatch.setattr(module, "LARGEST_KEPT", 100)
    (folder / "1.ts").write_bytes(bytes(1_000))
    (folder / "2.ts").write_bytes(b"")
    assert await (await client.get("/1.ts")).read() == bytes(1_000)
    assert await (await client.get("/2.ts")).read() == b""
    assert files.count == 0
