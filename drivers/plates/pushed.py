"""A plate camera that pushes its readings to a listener."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from collections.abc import Callable

from drivers.contract import DeviceConnected, DeviceLost, MessageRefused, MonotonicSeconds, Reports
from drivers.plates.dialect import Dialect, PartReports
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Found


class PushedPlates:
    """A `drivers.contract.Reader` for a camera that pushes; `listener.PushListener` hands it the camera's messages.

    Such a camera has no connection to watch, so it counts as connected while the listener listens. With
    `silence_seconds` it counts as lost when no message came for so long, until the next one.

    Args:
        device_id: the id that its reports carry, and the last part of the URL path that the camera pushes to.
        dialect: the camera's make.
        source: the only IP address that it may push from; "" for any.
        token: the secret that it must send; "" for none.
        silence_seconds: the longest silence of a camera that counts as connected; None for no limit.
        monotonic: the clock of stamps.

    Raises ValueError when neither source nor token is given, since anyone could open the gate then.
    """

    def __init__(
        self,
        *,
        device_id: int,
        dialect: Dialect,
        source: str = "",
        token: str = "",
        silence_seconds: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not source and not token:
            raise ValueError("a camera that pushes needs a source or a token")
        self._device_id = device_id
        self._dialect = dialect
        self._source = _address(source) if source else None
        self._token = token
        self._silence = silence_seconds
        self._monotonic = monotonic
        self._parts = PartReports(device_id=device_id, dialect=dialect)
        self._reports: Reports | None = None
        self._changed = asyncio.Event()
        self._listening = False
        self._fault = ""
        self._online: bool | None = None
        self._heard_at: MonotonicSeconds = 0.0

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    @property
    def dialect(self) -> Dialect:
        """The camera's make."""
        return self._dialect

    def objection(self, *, address: str, token: str) -> str:
        """Return why a message from this address with this token is not accepted as the camera's; "" when it is."""
        if self._source is not None and _address(address) != self._source:
            return f"a push came from {address}, which is not the camera's source"
        if self._token and not hmac.compare_digest(token.encode(), self._token.encode()):
            return f"a push from {address} had no token, or another one"
        return ""

    def comes_from(self, address: str) -> bool:
        """Return whether this address is the camera's configured source."""
        return self._source is not None and _address(address) == self._source

    def listening(self, *, fault: str = "") -> None:
        """Note that the listener listens; with a `fault`, that it cannot, for this reason."""
        self._listening, self._fault = not fault, fault
        self._changed.set()

    def read(self, part: BodyPart) -> tuple[Found, ...]:
        """Return the readings in a part of a message, and what cannot be read in it. Any thread may call it."""
        return self._parts.read(part)

    def take(self, found: tuple[Found, ...], part: BodyPart) -> bool:
        """Report what was found in a part of a message; return False when the driver does not run."""
        if self._reports is None:
            return False
        self._heard_at = self._monotonic()
        self._tell(online=True)
        for report in self._parts.of(found, part, at=self._heard_at):
            self._reports(report)
        return True

    def refuse(self, reason: str, raw: bytes = b"") -> None:
        """Report a message that was refused for this reason. `raw`: its first bytes."""
        if self._reports is not None:
            self._reports(MessageRefused(self._device_id, reason, raw, self._monotonic()))

    async def run(self, reports: Reports) -> None:
        """Report readings and losses until cancelled."""
        self._reports, self._online, self._heard_at = reports, None, self._monotonic()
        try:
            while True:
                self._changed.clear()
                await self._rest(self._judge())
        finally:
            self._reports = None

    def _judge(self) -> float | None:
        """Report whether the camera is connected, if that changed.

        Return the seconds until its silence makes it lost; None when no time limits its state.
        """
        if self._fault:
            self._tell(online=False, reason=self._fault)
            return None
        if not self._listening:
            return None
        if self._online is None or (self._silence is None and not self._online):
            self._tell(online=True)
        if self._silence is None:
            return None
        left = self._heard_at + self._silence - self._monotonic()
        if left <= 0.0:
            self._tell(online=False, reason=f"nothing was pushed for {self._silence:g} s")
            return None
        return left

    def _tell(self, *, online: bool, reason: str = "") -> None:
        if self._reports is None or self._online is online:
            return
        self._online = online
        now = self._monotonic()
        self._reports(DeviceConnected(self._device_id, now) if online else DeviceLost(self._device_id, reason, now))
        self._changed.set()

    async def _rest(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address
