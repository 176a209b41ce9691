"""The section about webhooks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from gateway.site.addresses import Network, networks
from gateway.site.fields import Section


class WebhooksSection(Section):
    """`[webhooks]`: which receivers on private networks may be sent to, besides everybody on the public internet."""

    private_receivers: tuple[str, ...] = Field(default=(), max_length=64)
    ca_file: str | None = Field(default=None, description="authorities to trust besides the machine's own")
    timeout_seconds: Annotated[float, Field(ge=1, le=30)] = 20

    @field_validator("private_receivers")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        networks(value, whose="your receivers")
        return value

    def networks(self) -> tuple[Network, ...]:
        """Return `private_receivers` as networks; a single address is a network of one."""
        return networks(self.private_receivers, whose="your receivers")
