"""The base of gates that are commanded and polled over HTTP."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

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
    PointState,
    ProtocolViolation,
    Report,
    Reports,
)
from drivers.gates.polls import LOST_AFTER_POLLS, LOST_AFTER_SECONDS, PollPace, PollWatch
from drivers.http_session import (
    DeviceAccount,
    DeviceAccountRefused,
    OneAttempt,
    open_session,
    read_answer,
    reason_of,
    refuse_status,
)

_REFUSED_WAIT = 30.0
"""Seconds between polls after a refused password, because devices lock an account that keeps trying."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to a gate's controller; `path` begins with "/"."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpStatus:
    """A gate's state as one answer tells it. `points` are its inputs, by name; always the same names."""

    position: GatePosition
    points: Mapping[str, PointState] = field(default_factory=dict)


class HttpGate(ABC):
    """A `drivers.contract.Gate` over HTTP. A subclass says what is asked, and what the answers mean.

    A command is one request on a connection of its own, which is never repeated: a gate that has obeyed already would
    get it twice. When the digest challenge has changed, the first attempt is turned down without effect, and a second
    one with the right credentials follows. `forbidden` is called right before the first byte of each attempt.

    Attributes:
        called: the name of the device in sentences.
        stops: whether it has a command to stop.

    Args:
        device_id: the id that its reports carry.
        url: `http://host:port` of the gate's controller.
        account: the gateway's account there; None without one.
        poll_seconds: the interval between two polls of the status; at most 1.
        answer_seconds: how long an answer to a command may take, from the first byte sent; after that the connection is
            reset.
        monotonic: the clock of deadlines and stamps.
    """

    called: ClassVar[str] = "the gate"
    stops: ClassVar[bool] = True

    def __init__(
        self,
        *,
        device_id: int,
        url: str,
        account: DeviceAccount | None = None,
        poll_seconds: float = 0.5,
        answer_seconds: float = 3.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._url = url.rstrip("/")
        self._sign_in = () if account is None else (account.digest(),)
        self._answer_seconds = answer_seconds
        self._monotonic = monotonic
        self._commanding = asyncio.Lock()
        self._pace = PollPace(poll_seconds=poll_seconds, monotonic=monotonic)
        self._away = ""

    @abstractmethod
    def command_request(self, command: str) -> HttpRequest:
        """Return the request of a command: "open", "close", "stop", or another one that a subclass sends."""

    @abstractmethod
    def check_answer(self, body: bytes) -> None:
        """Raise DeviceFault if the answer to a command refuses it, ProtocolViolation if it is not readable."""

    @abstractmethod
    def status_request(self) -> HttpRequest:
        """Return the request of the status."""

    @abstractmethod
    def read_status(self, body: bytes) -> HttpStatus:
        """Parse a status. Raises ProtocolViolation for an unreadable one."""

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Poll the status and report until cancelled."""
        watch = PollWatch(device_id=self._device_id, started_at=self._monotonic())
        async with open_session(reuse_lines=True) as session:
            while True:
                asked_at = self._monotonic()
                due = self._pace.begin()
                try:
                    status = await self._poll(session)
                except DeviceAccountRefused as refusal:
                    # One refusal is enough to count as lost: more tries would lock the account.
                    for _ in range(LOST_AFTER_POLLS):
                        self._tell(watch.missed(str(refusal), at=self._monotonic(), asked=True, answers=True), reports)
                    due = self._monotonic() + _REFUSED_WAIT
                except DriverError as error:
                    self._tell(watch.failed(error, at=self._monotonic()), reports)
                else:
                    self._away = ""
                    self._tell(watch.answered(status.position, status.points, at=asked_at), reports)
                await self._pace.rest(until=due)

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open. Returns once it acknowledged it; errors as `drivers.contract.Gate`."""
        await self.send("open", deadline=deadline, forbidden=forbidden)

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the gate to close. Returns once it acknowledged it; errors as `drivers.contract.Gate`."""
        await self.send("close", deadline=deadline, forbidden=forbidden)

    async def stop(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop. Returns once it acknowledged it; errors as `drivers.contract.Gate`."""
        if not self.stops:
            raise DeviceFault(f"{self.called} has no command to stop")
        await self.send("stop", deadline=deadline, forbidden=forbidden)

    async def send(self, command: str, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Send a command, once the one before is over. Returns and raises as the commands of a gate."""
        request = self.command_request(command)
        if self._away:
            raise LineDown(f"{self.called} is offline: {self._away}")
        try:
            async with asyncio.timeout(max(0.0, deadline - self._monotonic())):
                await self._commanding.acquire()
        except TimeoutError as error:
            raise DeadlinePassed(f"the line was not free for {command} in time") from error
        try:
            await self._send(command, request, deadline, forbidden)
        finally:
            self._commanding.release()
            self._pace.wake()

    async def _send(
        self, command: str, request: HttpRequest, deadline: MonotonicSeconds, forbidden: Forbidden | None
    ) -> None:
        sent = False
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(max(0.0, deadline - self._monotonic()) + self._answer_seconds)

        def ask() -> None:
            nonlocal sent
            if self._monotonic() >= deadline:
                raise DeadlinePassed(f"the line was not free for {command} in time")
            if forbidden is not None and (reason := forbidden()):
                raise NotPermitted(reason)
            sent = True
            limit.reschedule(loop.time() + self._answer_seconds)

        try:
            async with limit, open_session(reuse_lines=False) as session:
                self.check_answer(await self._answer(session, request, OneAttempt(name=self.called, before_bytes=ask)))
        except TimeoutError as error:
            if not sent:
                raise LineDown(f"{self.called} cannot be reached in time") from error
            raise LinkError(f"{self.called} did not answer to {command}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise LinkError(f"{self.called} broke off its answer to {command}: {reason_of(error)}") from error
        except ProtocolViolation as error:
            raise LinkError(f"{self.called}'s answer to {command} is not readable: {error}") from error

    async def _poll(self, session: aiohttp.ClientSession) -> HttpStatus:
        try:
            async with asyncio.timeout(LOST_AFTER_SECONDS):
                return self.read_status(
                    await self._answer(session, self.status_request(), OneAttempt(name=self.called))
                )
        except TimeoutError as error:
            raise LinkError(f"{self.called} does not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise LinkError(f"{self.called} broke off: {reason_of(error)}") from error

    async def _answer(self, session: aiohttp.ClientSession, request: HttpRequest, attempt: OneAttempt) -> bytes:
        async with session.request(
            request.method,
            self._url + request.path,
            data=request.body,
            headers=request.headers,
            middlewares=(*self._sign_in, attempt),
            allow_redirects=False,
        ) as response:
            body = await read_answer(response)
            refuse_status(response.status, self.called)
            return body

    def _tell(self, due: tuple[Report, ...], reports: Reports) -> None:
        for report in due:
            if isinstance(report, DeviceLost | LossExplained):
                self._away = report.reason
            reports(report)
