"""A Hikvision entrance barrier, commanded over HTTP with digest authentication."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from drivers.contract import MonotonicSeconds
from drivers.gates.http_gate import HttpGate, HttpRequest, HttpStatus
from drivers.hikvision import isapi
from drivers.hikvision.isapi import BarrierControl
from drivers.http_session import DeviceAccount


class HikvisionBarrier(HttpGate):
    """A `drivers.contract.Gate` over ISAPI.

    The barrier reports its end positions and no movement, so `OPENING` and `CLOSING` are never reported. It has no
    command to stop. A locked barrier answers OK to open and close too, but does not move.

    Args:
        device_id: the id that its reports carry.
        url: `http://host:port` of the barrier's controller, or of the camera that it is connected to.
        account: the gateway's account at the barrier.
        channel: the barrier's parking channel.
        poll_seconds: as for `HttpGate`, like the others.
        answer_seconds: likewise.
        monotonic: likewise.
    """

    called: ClassVar[str] = "the barrier"
    stops: ClassVar[bool] = False

    def __init__(
        self,
        *,
        device_id: int,
        url: str,
        account: DeviceAccount,
        channel: int = 1,
        poll_seconds: float = 0.5,
        answer_seconds: float = 3.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            device_id=device_id,
            url=url,
            account=account,
            poll_seconds=poll_seconds,
            answer_seconds=answer_seconds,
            monotonic=monotonic,
        )
        self._channel = channel

    def command_request(self, command: str) -> HttpRequest:
        """Return the request of a command."""
        body, headers = isapi.control_body(BarrierControl(command)), {"Content-Type": isapi.XML_TYPE}
        return HttpRequest(isapi.control_path(self._channel), "PUT", body, headers)

    def check_answer(self, body: bytes) -> None:
        """Raise DeviceFault for an answer to a command that is not OK, ProtocolViolation for an unreadable one."""
        isapi.check_answer(body)

    def status_request(self) -> HttpRequest:
        """Return the request of the position."""
        return HttpRequest(isapi.status_path(self._channel))

    def read_status(self, body: bytes) -> HttpStatus:
        """Parse the position. Raises ProtocolViolation when there is none."""
        return HttpStatus(isapi.read_position(body))

    async def lock(self, *, deadline: MonotonicSeconds) -> None:
        """Lock the barrier: until it is unlocked, it answers OK to open and close but does not move."""
        await self.send(BarrierControl.LOCK, deadline=deadline)

    async def unlock(self, *, deadline: MonotonicSeconds) -> None:
        """Unlock the barrier, so that it obeys open and close again."""
        await self.send(BarrierControl.UNLOCK, deadline=deadline)
