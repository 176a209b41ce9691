"""`[storage]`, `[live]` and `[rtsp]`: retention of footage, live view, and streams for other equipment."""

from __future__ import annotations

import re
from ipaddress import ip_address
from itertools import pairwise
from typing import Self

from pydantic import Field, field_validator, model_validator

from drivers.settings import Name, SecretName, Section
from gateway.site.addresses import listening_host


class StorageSection(Section):
    """`[storage]`: limits of what is kept."""

    media_gigabytes: float = Field(default=20, gt=0)
    free_floor_gigabytes: float = Field(default=1, ge=0)
    continuous_days: int = Field(default=30, ge=1, le=3650, description="footage of no event is deleted after so long")
    transaction_days: int = Field(default=90, ge=1, le=3650, description="footage of events, and never before")
    incident_days: int = Field(default=365, ge=1, le=3650, description="footage of events that warn or alarm")
    evidence_megabytes: int = Field(default=200, ge=1, le=10_000, description="largest file that may be uploaded")
    evidence_per_event: int = Field(default=20, ge=0, le=1000, description="files uploaded to one camera event")

    @model_validator(mode="after")
    def _events_for_longer(self) -> Self:
        ladder = ("continuous_days", "transaction_days", "incident_days")
        for shorter, longer in pairwise(ladder):
            if getattr(self, longer) < getattr(self, shorter):
                raise ValueError(
                    f"'{longer}' is {getattr(self, longer)}, less than the {getattr(self, shorter)} of '{shorter}': "
                    "footage of events goes last"
                )
        return self


class LiveSection(Section):
    """`[live]`: live views of cameras. `addresses` are the machine's own; empty: offer all of them to viewers."""

    addresses: tuple[str, ...] = ()
    viewers_per_camera: int = Field(default=8, ge=0, le=100)
    viewers: int = Field(default=24, ge=0, le=1000)
    ice_servers: tuple[str, ...] = Field(
        default=(), description="STUN servers that viewers are told of: stun:host:port"
    )

    @field_validator("addresses")
    @classmethod
    def _own(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            try:
                ip_address(address)
            except ValueError as error:
                raise ValueError(f"{address!r} is not an IP address; write one like '192.168.1.10'") from error
        return value

    @field_validator("ice_servers")
    @classmethod
    def _stun(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for server in value:
            if not re.fullmatch(r"stuns?:[A-Za-z0-9.\-\[\]:]+", server):
                raise ValueError(f"{server!r} is not a STUN server; write one like 'stun:192.168.1.10:3478'")
        return value


class RtspSection(Section):
    """`[rtsp]`: cameras served on to the site's other equipment, at `rtsp://<host>:<port>/camera/<id>`.

    Cameras are recorded 24 to a process: the first 24 are served at `port`, the next at the port after it, and so
    on. Without this section nothing is served.
    """

    host: str = Field(default="0.0.0.0", min_length=1, max_length=253)  # noqa: S104  # other equipment is what it is for
    port: int = Field(default=8554, ge=1, le=65_000)
    username: Name
    password: SecretName

    @field_validator("host")
    @classmethod
    def _listening(cls, value: str) -> str:
        return listening_host(value)
