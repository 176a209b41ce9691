import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from waiting import until

from gateway.domain.errors import NotFoundError
from gateway.web.http.files import as_segment


@pytest.fixture
async def served(tmp_path):
    """Files of a folder, as segments at /<name>."""

    async def segment(request):
        try:
            return await as_segment(tmp_path / request.match_info["name"])
        except NotFoundError as error:
            raise web.HTTPNotFound from error

    app = web.Application()
    app.router.add_get("/{name}", segment)
    async with TestClient(TestServer(app)) as client:
        yield client, tmp_path


async def test_a_segment_may_be_cached_and_asked_for_in_parts(served):
    client, folder = served
    data = os.urandom(300_000)
    (folder / "1.ts").write_bytes(data)
    whole = await client.get("/1.ts")
    assert (whole.status, await whole.read(), whole.headers["Content-Type"]) == (200, data, "video/MP2T")
    assert "immutable" in whole.headers["Cache-Control"]
    head = await client.head("/1.ts")
    assert (head.status, head.headers["Content-Length"]) == (200, "300000")
    assert (await client.get("/1.ts", headers={"Range": "bytes=900000-"})).status == 416
    tag = whole.headers["ETag"]
    assert (await client.get("/1.ts", headers={"If-None-Match": tag})).status == 304
    part = await client.get("/1.ts", headers={"Range": "bytes=5-", "If-Range": tag})
    assert (part.status, await part.read()) == (206, data[5:])


async def test_a_deleted_segment_is_not_found(served):
    client, folder = served
    (folder / "1.ts").write_bytes(b"footage")
    assert await (await client.get("/1.ts")).read() == b"footage"
    (folder / "1.ts").unlink()
    assert (await client.get("/1.ts")).status == 404


def is_open(path: Path) -> bool:
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if descriptor.readlink() == path:
                return True
    return False


async def test_whoever_receives_slowly_gets_all_of_it_though_it_is_deleted(served):
    client, folder = served
    data = os.urandom(7_500_000)
    (folder / "1.ts").write_bytes(data)
    reader, writer = await asyncio.open_connection(client.host, client.port, limit=4_096)
    writer.write(b"GET /1.ts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    (folder / "1.ts").unlink()
    async with asyncio.timeout(30):
        assert await reader.read(-1) == data
    writer.close()


async def test_who_leaves_in_the_middle_holds_nothing_open(served):
    client, folder = served
    (folder / "1.ts").write_bytes(os.urandom(7_500_000))
    reader, writer = await asyncio.open_connection(client.host, client.port, limit=4_096)
    writer.write(b"GET /1.ts HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    assert is_open(folder / "1.ts"), "it is being sent"
    writer.transport.abort()
    await until(lambda: not is_open(folder / "1.ts"))
    assert (await client.get("/1.ts")).status == 200
