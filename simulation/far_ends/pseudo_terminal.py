"""The far side of a serial port: a pseudo-terminal under a lasting name, which can be unplugged and plugged in."""

from __future__ import annotations

import asyncio
import os
import tty
from collections.abc import Callable
from pathlib import Path

_READ_SIZE = 4096


class PseudoTerminal:
    """A serial device under a stable path, as udev's by-id links give.

    `plug_in` makes the device and its link; `unplug` hangs it up, as pulling the USB plug does.

    Args:
        path: the symbolic link by which programs open the port.
        on_bytes: called on the loop's thread with bytes that a program wrote to the port; None leaves them unread.
    """

    def __init__(self, *, path: Path, on_bytes: Callable[[bytes], None] | None = None) -> None:
        self._path = path
        self._on_bytes = on_bytes
        self._far: int | None = None
        self._near: int | None = None

    @property
    def path(self) -> Path:
        """The name of the port."""
        return self._path

    @property
    def device(self) -> str | None:
        """The terminal's device name while it is plugged in."""
        return None if self._near is None else os.ttyname(self._near)

    def plug_in(self) -> None:
        """Make the device and its link; nothing if it is plugged in already."""
        if self._far is not None:
            return
        self._far, self._near = os.openpty()
        tty.setraw(self._near)
        os.set_blocking(self._far, False)
        self._path.unlink(missing_ok=True)
        self._path.symlink_to(os.ttyname(self._near))
        if self._on_bytes is not None:
            asyncio.get_running_loop().add_reader(self._far, self._readable)

    def unplug(self) -> None:
        """Remove the device, so that a program which has it open sees a hang-up; nothing if it is unplugged already."""
        if self._far is None or self._near is None:
            return
        if self._on_bytes is not None:
            asyncio.get_running_loop().remove_reader(self._far)
        self._path.unlink(missing_ok=True)
        os.close(self._near)
        os.close(self._far)
        self._far = self._near = None

    def write(self, data: bytes) -> None:
        """Send bytes to the program that has the port open. They are lost if there is none or it does not read."""
        if self._far is None:
            return
        try:
            os.write(self._far, data)
        except BlockingIOError:
            return

    def _readable(self) -> None:
        if self._far is None or self._on_bytes is None:
            return
        try:
            data = os.read(self._far, _READ_SIZE)
        except BlockingIOError:
            return
        self._on_bytes(data)
