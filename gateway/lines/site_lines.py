"""The polled lines of a site, with the technicians' tools for them: scans, frames, and the values of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from drivers.contract import DeadlinePassed, DriverError
from drivers.modbus.scan import answer_seconds
from drivers.modbus.survey import UnitValues, read_unit
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.lines.frames import LineFrames, PolledLine
from gateway.lines.scans import LineScans
from gateway.runtime.clock import Clock
from gateway.texts import text

_ANSWER_BYTES = 60


@dataclass(frozen=True, slots=True)
class LineValues:
    """The values of the devices on these lines."""

    lines: Mapping[str, PolledLine]

    async def read(self, device_id: int) -> UnitValues:
        """Read all values of a Modbus device.

        Raises NotFoundError for any other device, CommandRefused when it does not answer now or the line has no time.
        """
        for line in self.lines.values():
            if (device := line.devices.get(device_id)) is not None:
                requests = ModbusRequests(
                    bus=line.bus,
                    unit=device.unit,
                    framing=device.framing,
                    timeout=device.profile.reply_ms / 1000,
                    pause=device.profile.pause_ms / 1000,
                    scan_shortest=min(device.profile.reply_ms / 1000, answer_seconds(line.bus, _ANSWER_BYTES)),
                )
                try:
                    return await read_unit(requests, device.profile)
                except DeadlinePassed as error:
                    raise CommandRefused(text("refused.line_full")) from error
                except DriverError as error:
                    raise CommandRefused(str(error)) from error
        raise NotFoundError(text("refused.device_without_modbus", device=str(device_id)))


@dataclass(frozen=True, slots=True)
class SiteLines:
    """The polled lines by the id of their link, with their scans, their frames and the values of their devices."""

    polled: Mapping[str, PolledLine]
    scans: LineScans
    frames: LineFrames
    values: LineValues

    @classmethod
    def of(cls, polled: Mapping[str, PolledLine], *, clock: Clock) -> Self:
        """Build the tools for these lines."""
        return cls(
            polled=polled,
            scans=LineScans(lines=polled, clock=clock),
            frames=LineFrames(lines=polled, clock=clock),
            values=LineValues(polled),
        )
