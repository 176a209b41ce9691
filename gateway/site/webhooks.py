"""The section about webhooks."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic import Field, field_validator

from gateway.site.fields import Section


class WebhooksSection(Section):
    """`[webhooks]`: which receivers on private networks may be sent to, besides everybody on the public internet."""

    private_receivers: tuple[str, ...] = Field(default=(), max_length=64)
    ca_file: str | None = Field(default=None, description="authorities to trust besides the machine's own")
    timeout_seconds: Annotated[float, Field(ge=1, le=30)] = 20

    @field_validator("private_receivers")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            try:
                network = ip_network(one)
            except ValueError as error:
                raise ValueError(
                    f"{one!r} is no address or network; write one like '192.168.1.20' or '10.0.5.0/24'"
                ) from error
            if network.prefixlen == 0:
                raise ValueError(f"{one!r} is every address there is: name those of your receivers")
        return value

    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The same as networks; a single address is a network of one."""
        return tuple(ip_network(one) for one in self.private_receivers)
