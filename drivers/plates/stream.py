"""A plate camera with an endless stream of readings, which the gateway pulls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp
from yarl import URL

from drivers.backoff import Reconnects
from drivers.contract import DeviceConnected, DriverError, LinkError, Reports
from drivers.http_session import (
    CONNECT_SECONDS,
    DeviceAccount,
    DeviceAccountRefused,
    OneAttempt,
    open_session,
    reason_of,
    refuse_status,
)
from drivers.losses import Loss, is_answering
from drivers.plates.dialect import Dialect, PartReports
from drivers.plates.multipart import READ_AT_ONCE, BodyPart, PartSplitter

_LONGEST_WAIT = 5.0
_STEADY_SECONDS = 10.0
_REFUSED_WAIT = 30.0
"""The wait after a refused password. Cameras lock an account after a few, often for half an hour and for everybody."""


class PlateStream:
    """A `drivers.contract.Reader` that pulls a camera's stream with digest authentication.

    The camera counts as connected from the first whole part on, and as lost when the stream ends or no part came for
    `silence_seconds`.

    Args:
        device_id: the id that its reports carry.
        url: `http://host:port` of the camera.
        dialect: the camera's make, which must have a stream; otherwise ValueError.
        account: the gateway's account at the camera.
        silence_seconds: the longest silence; None for the dialect's.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        url: str,
        dialect: Dialect,
        account: DeviceAccount,
        silence_seconds: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not dialect.stream_path:
            raise ValueError(f"{dialect.name} has no stream")
        self._device_id = device_id
        self._url = URL(url.rstrip("/") + dialect.stream_path, encoded=True)
        self._dialect = dialect
        self._account = account
        self._silence = silence_seconds or dialect.silence_seconds
        self._monotonic = monotonic
        self._parts = PartReports(device_id=device_id, dialect=dialect)
        self._online: bool | None = None
        self._loss = Loss(device_id=device_id)

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Keep the stream open and report plates until cancelled."""
        reconnects = Reconnects(longest=_LONGEST_WAIT, steady=_STEADY_SECONDS)
        self._online = None
        self._loss.over()
        async with open_session(reuse_lines=False) as session:
            digest = self._account.digest()
            while True:
                began_at, wait = self._monotonic(), 0.0
                try:
                    await self._follow(session, digest, reports)
                except DriverError as error:
                    reconnects.failed(lasted=self._monotonic() - began_at)
                    self._online = False
                    for report in self._loss.lost(str(error), at=self._monotonic(), answers=is_answering(error)):
                        reports(report)
                    if isinstance(error, DeviceAccountRefused):
                        wait = _REFUSED_WAIT
                await asyncio.sleep(max(wait, reconnects.wait()))

    async def _follow(
        self, session: aiohttp.ClientSession, digest: aiohttp.DigestAuthMiddleware, reports: Reports
    ) -> None:
        """Read one stream until it ends or fails, which always raises a DriverError."""
        attempt = OneAttempt(name=self._dialect.name)
        try:
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                response = await session.get(self._url, middlewares=(digest, attempt), allow_redirects=False)
        except TimeoutError as error:
            raise LinkError("it does not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:  # for example an authentication challenge that is invalid
            raise LinkError(f"it does not speak as expected: {reason_of(error)}") from error
        try:
            refuse_status(response.status, "it")
            await self._read(response, reports)
        finally:
            response.close()

    async def _read(self, response: aiohttp.ClientResponse, reports: Reports) -> None:
        splitter = PartSplitter(element=self._dialect.element)
        heard_at = self._monotonic()
        while True:
            try:
                async with asyncio.timeout(max(0.0, heard_at + self._silence - self._monotonic())):
                    data = await response.content.read(READ_AT_ONCE)
            except TimeoutError as error:
                raise LinkError(f"nothing came for {self._silence:g} s, not even a heartbeat") from error
            except (aiohttp.ClientError, OSError) as error:
                raise LinkError(f"the stream broke: {reason_of(error)}") from error
            if not data:
                raise LinkError("it ended the stream")
            for part in splitter.feed(data):
                heard_at = self._monotonic()
                self._take(part, heard_at, reports)
            await asyncio.sleep(0)  # what has come already gives no turn to others

    def _take(self, part: BodyPart, at: float, reports: Reports) -> None:
        if not self._online:
            self._online = True
            self._loss.over()
            reports(DeviceConnected(self._device_id, at))
        for report in self._parts.of(self._parts.read(part), part, at=at):
            reports(report)
