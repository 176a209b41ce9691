"""A Hikvision entrance barrier, commanded over HTTP with digest authentication."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp

from drivers.contract import (
    DeadlinePassed,
    DeviceFault,
    DeviceLost,
    DriverError,
    Forbidden,
    GatePosition,
    LineDown,
    LinkError,
    LossExplained,
    MonotonicSeconds,
    NotPermitted,
    ProtocolViolation,
    Report,
    Reports,
)
from drivers.gates.pace import PollPace
from drivers.gates.polls import LOST_AFTER_POLLS, LOST_AFTER_SECONDS, Watch
from drivers.hikvision import isapi
from drivers.hikvision.isapi import Control
from drivers.http_session import (
    Account,
    AccountRefused,
    OneAttempt,
    open_session,
    read_answer,
    reason_of,
    refuse_status,
)

_REFUSED_WAIT = 30.0
"""Seconds between polls after a refused password, because the device locks an account that keeps trying."""


class HikvisionBarrier:
    """A `drivers.contract.Gate` over ISAPI.

    The barrier reports its end positions and no movement, so `OPENING` and `CLOSING` are never reported. It has no
    command to stop.

    A command is one request on a connection of its own. When the barrier's digest challenge has changed, the first
    attempt is turned down without effect, and a second one with the right credentials follows. `forbidden` is called
    before each attempt.

    Args:
        device_id: the id that its reports carry.
        url: `http://host:port` of the barrier's controller, or of the camera that it is connected to.
        account: the gateway's account at the barrier.
        channel: the barrier's parking channel.
        poll_seconds: the interval between two polls of the position; at most 1.
        answer_seconds: how long an answer to a command may take, from the first byte sent; after that the connection is
            reset.
        monotonic: the clock of deadlines and stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        url: str,
        account: Account,
        channel: int = 1,
        poll_seconds: float = 0.5,
        answer_seconds: float = 3.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._control_url = url.rstrip("/") + isapi.control_path(channel)
        self._status_url = url.rstrip("/") + isapi.status_path(channel)
        self._digest = account.digest()
        self._answer_seconds = answer_seconds
        self._monotonic = monotonic
        self._commanding = asyncio.Lock()
        self._pace = PollPace(poll_seconds=poll_seconds, monotonic=monotonic)
        self._away = ""

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Poll the position and report until cancelled."""
        watch = Watch(device_id=self._device_id, started_at=self._monotonic())
        async with open_session(reuse_lines=True) as session:
            while True:
                asked_at = self._monotonic()
                due = self._pace.begin()
                try:
                    position = await self._poll(session)
                except AccountRefused as refusal:
                    # One refusal is enough to count as lost: more tries would lock the account.
                    for _ in range(LOST_AFTER_POLLS):
                        self._tell(watch.missed(str(refusal), at=self._monotonic(), asked=True, answers=True), reports)
                    due = self._monotonic() + _REFUSED_WAIT
                except DriverError as error:
                    self._tell(watch.failed(error, at=self._monotonic()), reports)
                else:
                    self._away = ""
                    self._tell(watch.answered(position, {}, at=asked_at), reports)
                await self._pace.rest(until=due)

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the barrier to open. Returns once it answered OK, which a locked barrier does too."""
        await self._command(Control.OPEN, deadline, forbidden)

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the barrier to close. Returns once it answered OK, which a locked barrier does too."""
        await self._command(Control.CLOSE, deadline, forbidden)

    async def stop(
        self,
        *,
        deadline: MonotonicSeconds,  # noqa: ARG002 (the contract's signature)
        forbidden: Forbidden | None = None,  # noqa: ARG002 (the contract's signature)
    ) -> None:
        """Raise DeviceFault, because ISAPI has no command to stop."""
        raise DeviceFault("a Hikvision barrier has no command to stop")

    async def lock(self, *, deadline: MonotonicSeconds) -> None:
        """Lock the barrier: until it is unlocked, it answers OK to open and close but does not move."""
        await self._command(Control.LOCK, deadline)

    async def unlock(self, *, deadline: MonotonicSeconds) -> None:
        """Unlock the barrier, so that it obeys open and close again."""
        await self._command(Control.UNLOCK, deadline)

    async def _command(self, control: Control, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        if self._away:
            raise LineDown(f"the barrier is offline: {self._away}")
        try:
            async with asyncio.timeout(max(0.0, deadline - self._monotonic())):
                await self._commanding.acquire()
        except TimeoutError as error:
            raise DeadlinePassed(f"the line was not free for {control} in time") from error
        try:
            await self._send(control, deadline, forbidden)
        finally:
            self._commanding.release()
            self._pace.wake()

    async def _send(self, control: Control, deadline: MonotonicSeconds, forbidden: Forbidden | None) -> None:
        sent = False
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(max(0.0, deadline - self._monotonic()) + self._answer_seconds)

        def ask() -> None:
            nonlocal sent
            if self._monotonic() >= deadline:
                raise DeadlinePassed(f"the line was not free for {control} in time")
            if forbidden is not None and (reason := forbidden()):
                raise NotPermitted(reason)
            sent = True
            limit.reschedule(loop.time() + self._answer_seconds)

        middlewares = (self._digest, OneAttempt(name="the barrier", before_bytes=ask))
        try:
            async with (
                limit,
                open_session(reuse_lines=False) as session,
                session.put(
                    self._control_url,
                    data=isapi.control_body(control),
                    headers={"Content-Type": isapi.XML_TYPE},
                    middlewares=middlewares,
                    allow_redirects=False,
                ) as response,
            ):
                await _judge(response)
        except TimeoutError as error:
            if not sent:
                raise LineDown("the barrier cannot be reached in time") from error
            raise LinkError(f"the barrier did not answer to {control}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise LinkError(f"the barrier broke off its answer to {control}: {reason_of(error)}") from error
        except ProtocolViolation as error:
            raise LinkError(f"the barrier's answer to {control} is not readable: {error}") from error

    async def _poll(self, session: aiohttp.ClientSession) -> GatePosition:
        try:
            async with (
                asyncio.timeout(LOST_AFTER_SECONDS),
                session.get(
                    self._status_url,
                    middlewares=(self._digest, OneAttempt(name="the barrier")),
                    allow_redirects=False,
                ) as response,
            ):
                refuse_status(response.status, "the barrier")
                return isapi.read_position(await read_answer(response))
        except TimeoutError as error:
            raise LinkError("the barrier does not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise LinkError(f"the barrier broke off: {reason_of(error)}") from error

    def _tell(self, due: tuple[Report, ...], reports: Reports) -> None:
        for report in due:
            if isinstance(report, DeviceLost | LossExplained):
                self._away = report.reason
            reports(report)


async def _judge(response: aiohttp.ClientResponse) -> None:
    """Raise unless the answer to a command is OK: DeviceFault for a refusal, LinkError for a server error.

    An unreadable answer raises ProtocolViolation.
    """
    body = await read_answer(response)
    if response.status == 200:
        isapi.check_answer(body)
        return
    refuse_status(response.status, "the barrier")
