"""The serial ports of this machine, under names that stay the same when cables are plugged in elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BY_ID = Path("/dev/serial/by-id")


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A serial port: its lasting name, and the device file that it is at present."""

    path: str
    device: str


def serial_ports(folder: Path = BY_ID) -> tuple[SerialPort, ...]:
    """Return the ports of USB adapters, sorted by name; none when there are no adapters."""
    try:
        names = sorted(folder.iterdir())
    except OSError:  # without an adapter the system does not make the folder
        return ()
    return tuple(SerialPort(str(name), str(name.resolve())) for name in names)
