"""The serial ports of this machine, under names that stay when cables change places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BY_ID = Path("/dev/serial/by-id")


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A port: its lasting name, and the device that it is now."""

    path: str
    device: str


def serial_ports(folder: Path = BY_ID) -> tuple[SerialPort, ...]:
    """Return the ports of adapters by their ids, in order; none when there are no adapters."""
    try:
        names = sorted(folder.iterdir())
    except OSError:  # no adapter: the folder is not even made
        return ()
    return tuple(SerialPort(str(name), str(name.resolve())) for name in names)
