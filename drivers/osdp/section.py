"""The section of an OSDP reader in the site file, and its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from drivers.device import CardReaderDevice, Device, LineNumber, NamedLine, Surroundings
from drivers.settings import ReaderKey

if TYPE_CHECKING:
    from drivers.osdp.line import OsdpLine
    from drivers.osdp.reader import OsdpReader

MOST_READERS = 32
"""libosdp's limit of readers on one line."""

_KEY = re.compile(r"[0-9A-Fa-f]{32}")
_KNOWN_TO_ALL = bytes(range(0x30, 0x40))
"""SCBK-D, the default key of OSDP 2 for installation, which everybody knows."""


def key_of(text: str) -> bytes:
    """Parse a reader's key of 16 bytes. Raises ValueError, without the text, for a malformed or the default key."""
    if not _KEY.fullmatch(text):
        raise ValueError("must be 32 hexadecimal digits; `edge-gateway osdp provision` makes a key")
    key = bytes.fromhex(text)
    if key == _KNOWN_TO_ALL:
        raise ValueError("is the key that every new reader knows; `edge-gateway osdp provision` makes another")
    return key


class OsdpReaderDevice(CardReaderDevice):
    """A card reader or keypad on OSDP. The key is the secret of that name: 32 hexadecimal digits."""

    driver: Literal["osdp-reader"]
    address: int = Field(default=0, ge=0, le=126)
    key: ReaderKey

    shares_as: ClassVar[str] = "osdp"
    has_keys: ClassVar[bool] = True
    is_part_of_line: ClassVar[bool] = True
    most_on_line: ClassVar[int | None] = MOST_READERS

    def number(self) -> LineNumber:
        """Return the reader's address."""
        return LineNumber("address", self.address, self.address)

    def line_faults(self, line: NamedLine) -> Iterator[tuple[str, str]]:
        """Yield a fault for a line with other characters than OSDP has."""
        spec = line.spec
        if (spec.parity, spec.stop_bits, spec.data_bits) != ("none", 1, 8):
            yield "link", f"OSDP has 8 data bits, no parity and 1 stop bit; change that of {line.name!r}"

    def new_line(self, name: str, sharing: Sequence[Device], parts: Surroundings) -> OsdpLine:
        """Return the line of these readers. Raises ValueError for a key that cannot be used."""
        from drivers.osdp.line import OsdpLine  # noqa: PLC0415  # only a site with such a line loads it

        readers = (device for device in sharing if isinstance(device, OsdpReaderDevice))
        keys = {reader.address: key_of(parts.secret(reader.key)) for reader in readers}
        return OsdpLine(name=name, spec=parts.spec, keys=keys, monotonic=parts.monotonic)

    def build(self, parts: Surroundings) -> OsdpReader:
        """Build the driver."""
        from drivers.osdp.line import OsdpLine  # noqa: PLC0415
        from drivers.osdp.reader import OsdpReader  # noqa: PLC0415

        assert isinstance(parts.line, OsdpLine)  # noqa: S101 (what `new_line` makes)
        return OsdpReader(
            device_id=self.id,
            line=parts.line,
            address=self.address,
            hold_seconds=self.hold_seconds,
            monotonic=parts.monotonic,
        )
