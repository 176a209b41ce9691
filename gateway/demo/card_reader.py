"""A simulated card reader on a serial port."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gateway.demo.pseudo_terminal import PseudoTerminal


class CardReaderFarEnd:
    """Sends a line for each card presented.

    Args:
        path: the name under which the port is opened.
        terminator: what ends a line.
        prefix: what begins a line.
    """

    def __init__(self, *, path: Path, terminator: str = "\r\n", prefix: str = "") -> None:
        self._port = PseudoTerminal(path=path)
        self._terminator = terminator
        self._prefix = prefix

    @property
    def url(self) -> str:
        """The port as a site file names it."""
        return f"serial:{self._port.path}"

    @property
    def is_plugged_in(self) -> bool:
        """Whether the reader is there."""
        return self._port.is_plugged_in

    @property
    def device(self) -> str | None:
        """The system's own name of the port while it is plugged in."""
        return self._port.device

    def plug_in(self) -> None:
        """Connect the reader."""
        self._port.plug_in()

    def unplug(self) -> None:
        """Pull the reader's plug."""
        self._port.unplug()

    def present(self, card: str) -> None:
        """Hold a card to the reader: one whole line goes out."""
        self._port.write(f"{self._prefix}{card}{self._terminator}".encode("ascii"))

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send raw bytes piece by piece: noise, torn lines, missing terminators."""
        for piece in pieces:
            self._port.write(piece)
