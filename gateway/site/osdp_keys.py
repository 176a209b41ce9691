"""Checks of OSDP lines: addresses and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.domain.errors import ConfigError
from gateway.site.fault import Fault
from gateway.site.models import OsdpReaderDevice, Site
from gateway.site.secrets import Secrets

MOST_READERS = 32
"""libosdp's limit of readers on one line."""

_KEY = re.compile(r"[0-9A-Fa-f]{32}")
_KNOWN_TO_ALL = bytes(range(0x30, 0x40))
"""SCBK-D, the default key of OSDP 2 for installation, which everybody knows."""


def key_of(text: str) -> bytes:
    """Parse a reader's key of 16 bytes. Raises ConfigError, without the text, for a malformed or the default key."""
    if not _KEY.fullmatch(text):
        raise ConfigError("must be 32 hexadecimal digits; `edge-gateway osdp provision` makes a key")
    key = bytes.fromhex(text)
    if key == _KNOWN_TO_ALL:
        raise ConfigError("is the key that every new reader knows; `edge-gateway osdp provision` makes another")
    return key


def osdp_line_faults(site: Site) -> Iterator[Fault]:
    """Yield the faults of OSDP lines: an address used twice, too many readers, wrong parity or stop bits."""
    links = {link.id: link for link in site.links}
    users: dict[tuple[str, int], int] = {}
    readers: dict[str, int] = {}
    for index, device in _readers(site):
        first = users.setdefault((device.link, device.address), index)
        if first != index:
            sentence = f"{device.address} on {device.link!r} is already used by devices[{first}]"
            yield Fault(f"devices[{index}].address", sentence)
        readers[device.link] = readers.get(device.link, 0) + 1
        if readers[device.link] == MOST_READERS + 1:
            yield Fault(f"devices[{index}].link", f"{device.link!r} has more than {MOST_READERS} readers")
        link = links.get(device.link)
        if link is not None and (link.parity, link.stop_bits, link.data_bits) != ("none", 1, 8):
            sentence = f"OSDP has 8 data bits, no parity and 1 stop bit; change that of {device.link!r}"
            yield Fault(f"devices[{index}].link", sentence)


def osdp_key_faults(site: Site, secrets: Secrets) -> Iterator[Fault]:
    """Yield faults for keys that are missing or malformed."""
    for index, device in _readers(site):
        try:
            text = secrets.get(device.key)
        except ConfigError as error:
            yield Fault(f"devices[{index}].key", f"{error}; `edge-gateway osdp provision` makes it")
            continue
        try:
            key_of(text)
        except ConfigError as error:
            yield Fault(f"devices[{index}].key", f"secret {device.key!r} {error}")


def _readers(site: Site) -> Iterator[tuple[int, OsdpReaderDevice]]:
    for index, device in enumerate(site.devices):
        if isinstance(device, OsdpReaderDevice):
            yield index, device
