"""The barrier's section in the site file."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from drivers.contract import Gate
from drivers.device import GateDevice, LineKind, LineNumber, Surroundings
from drivers.settings import DevicePassword, Username


class HikvisionBarrierDevice(GateDevice):
    """A Hikvision barrier, commanded over HTTP. It has no points."""

    driver: Literal["hikvision-barrier"]
    username: Username
    password: DevicePassword
    channel: int = Field(default=1, ge=1, le=64)

    shares_as: ClassVar[str] = "http"

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("http",)

    def number(self) -> LineNumber:
        """Return the barrier's channel."""
        return LineNumber("channel", self.channel, self.channel)

    def build(self, parts: Surroundings) -> Gate:
        """Build the driver."""
        from drivers.hikvision.barrier import HikvisionBarrier  # noqa: PLC0415  # only a site with one loads it
        from drivers.http_session import DeviceAccount  # noqa: PLC0415

        return HikvisionBarrier(
            device_id=self.id,
            url=parts.spec.url,
            account=DeviceAccount(self.username, parts.secret(self.password)),
            channel=self.channel,
            monotonic=parts.monotonic,
        )
