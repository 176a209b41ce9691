"""The settings of a link of the site file, in the form that drivers take."""

from __future__ import annotations

from drivers.link import LinkSpec
from gateway.site import Link


def link_spec(link: Link) -> LinkSpec:
    """Return a link of the site file in the form that drivers take."""
    return LinkSpec(
        url=link.url,
        baud=link.baud,
        parity=link.parity,
        stop_bits=link.stop_bits,
        data_bits=link.data_bits,
        pause=link.pause_ms / 1000,
        numbers_come_back=link.transaction_numbers,
        echoes=link.echoes,
    )
