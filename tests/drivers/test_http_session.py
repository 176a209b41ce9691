"""HTTP towards devices: what is sent once, what is bounded, and what errors say."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from free_ports import free_port

from drivers.contract import DeviceFault, LineDown, LinkError, NotPermitted
from drivers.http_session import (
    DeviceAccount,
    DeviceAccountRefused,
    OneAttempt,
    open_session,
    read_answer,
    refuse_status,
)
from simulation.far_ends.http_device import on_loopback


@asynccontextmanager
async def serving(handler):
    app = web.Application()
    app.router.add_route("*", "/", handler)
    async with on_loopback(app) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.mark.parametrize("reuse_lines", [True, False])
async def test_request_whose_line_breaks_is_sent_once(reuse_lines):
    heard = []

    async def hang_up(request):
        heard.append(await request.read())
        request.transport.abort()
        return web.Response()

    async with serving(hang_up) as url, open_session(reuse_lines=reuse_lines) as session:
        with pytest.raises(LinkError, match="broke off"):
            await session.put(url, data=b"open", middlewares=(OneAttempt(name="it"),))
    assert heard == [b"open"]


async def test_attempt_that_is_forbidden_sends_nothing():
    heard = []

    async def hear(request):
        heard.append(request.method)
        return web.Response()

    def forbid():
        raise NotPermitted("no")

    async with serving(hear) as url, open_session(reuse_lines=False) as session:
        with pytest.raises(NotPermitted):
            await session.put(url, data=b"close", middlewares=(OneAttempt(name="it", before_bytes=forbid),))
    assert heard == []


async def test_device_that_is_not_there():
    async with open_session(reuse_lines=True) as session:
        with pytest.raises(LineDown, match="it cannot be reached: Connection refused"):
            await session.get(f"http://127.0.0.1:{free_port()}/", middlewares=(OneAttempt(name="it"),))


async def test_answer_is_bounded_and_not_unpacked():
    async def endless(request):
        assert request.headers["Accept-Encoding"] == "identity"
        assert "Cookie" not in request.headers
        response = web.Response(body=b"x" * 100_000)
        response.set_cookie("a", "b")
        return response

    async with serving(endless) as url, open_session(reuse_lines=True) as session:
        for _ in range(2):
            with pytest.raises(LinkError, match="more than"):
                await read_answer(await session.get(url, middlewares=(OneAttempt(name="it"),)))


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, DeviceAccountRefused), (403, DeviceAccountRefused), (404, DeviceFault), (302, LinkError), (503, LinkError)],
)
def test_status_becomes_a_reaction(status, error):
    refuse_status(200, "it")
    with pytest.raises(error, match=str(status)):
        refuse_status(status, "it")


def test_account_hides_its_password():
    assert "correct-horse" not in repr(DeviceAccount("gateway", "correct-horse"))
