"""Checks of the keys of OSDP readers."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.osdp.section import OsdpReaderDevice, key_of
from gateway.domain.errors import ConfigError
from gateway.site.fault import Fault
from gateway.site.models import Site
from gateway.site.secrets import Secrets


def osdp_key_faults(site: Site, secrets: Secrets) -> Iterator[Fault]:
    """Yield faults for keys that are missing or malformed."""
    for index, device in enumerate(site.devices):
        if not isinstance(device, OsdpReaderDevice):
            continue
        try:
            text = secrets.get(device.key)
        except ConfigError as error:
            yield Fault(f"devices[{index}].key", f"{error}; `edge-gateway osdp provision` makes it")
            continue
        try:
            key_of(text)
        except ValueError as error:
            yield Fault(f"devices[{index}].key", f"secret {device.key!r} {error}")
