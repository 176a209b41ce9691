"""A simulated Hikvision barrier: a `Barrier` behind its HTTP interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from drivers.hikvision.isapi import BarrierControl, control_path, status_path
from drivers.http_session import DeviceAccount
from drivers.xml_texts import read_xml
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.http_device import DigestGuard, on_loopback

_ANSWER = (
    '<?xml version="1.0" encoding="UTF-8"?><ResponseStatus version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema">'
    "<requestURL>{path}</requestURL><statusCode>{code}</statusCode><statusString>{text}</statusString>"
    "<subStatusCode>{sub}</subStatusCode></ResponseStatus>"
)


class HikvisionBarrierFarEnd:
    """One barrier with an account, and the faults of such devices.

    Attributes:
        obeyed: the commands that came with the right credentials, even while the barrier was locked.
        guard: the guard that checks the account.
        refusing: whether it answers commands with a fault of its own.
        speaking: an event that, while cleared, lets it take requests and answer none.
        hanging_up: whether it obeys a command and breaks the connection before the answer.

    Args:
        barrier: the machine that it controls.
        account: the account that may command it.
        channel: its parking channel.
        monotonic: the machine's clock.
    """

    def __init__(
        self,
        *,
        barrier: Barrier,
        account: DeviceAccount,
        channel: int = 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._barrier = barrier
        self._channel = channel
        self._monotonic = monotonic
        self.guard = DigestGuard(account=account)
        self.obeyed: list[BarrierControl] = []
        self.refusing = False
        self.speaking = asyncio.Event()
        self.speaking.set()
        self.hanging_up = False

    def serve(self, *, port: int = 0) -> AbstractAsyncContextManager[int]:
        """Serve on a port of this machine; 0 takes a free one."""
        app = web.Application()
        app.router.add_put(control_path(self._channel), self._control)
        app.router.add_get(status_path(self._channel), self._status)
        return on_loopback(app, port=port)

    async def _control(self, request: web.Request) -> web.Response:
        body = await request.read()
        await self.speaking.wait()
        if (challenge := self.guard.challenge(request)) is not None:
            return challenge
        control = BarrierControl(read_xml(body).first["ctrlMode"])
        if self.refusing:
            return _answer(request, code=4, text="Invalid Operation", sub="deviceBusy")
        self.obeyed.append(control)
        self._obey(control)
        if self.hanging_up and request.transport is not None:
            request.transport.abort()
        return _answer(request)

    async def _status(self, request: web.Request) -> web.Response:
        await self.speaking.wait()
        if (challenge := self.guard.challenge(request)) is not None:
            return challenge
        state = self._barrier.state(now=self._monotonic())
        said = 1 if state.closed_limit else 2 if state.open_limit else 0
        return _xml(
            '<BarrierGateStatus version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema">'
            f"<barrierGateStatus>{said}</barrierGateStatus></BarrierGateStatus>"
        )

    def _obey(self, control: BarrierControl) -> None:
        now = self._monotonic()
        match control:
            case BarrierControl.OPEN:
                self._barrier.command(Wish.OPEN, now=now)
            case BarrierControl.CLOSE:
                self._barrier.command(Wish.CLOSE, now=now)
            case BarrierControl.LOCK:
                self._barrier.set_locked(locked=True, now=now)
            case BarrierControl.UNLOCK:
                self._barrier.set_locked(locked=False, now=now)


def _answer(request: web.Request, *, code: int = 1, text: str = "OK", sub: str = "ok") -> web.Response:
    return _xml(_ANSWER.format(path=request.path, code=code, text=text, sub=sub))


def _xml(text: str) -> web.Response:
    return web.Response(body=text.encode(), content_type="application/xml")
