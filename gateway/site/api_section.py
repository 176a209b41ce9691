"""`[api]`: address and encryption of the interface."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from drivers.settings import Section, following
from gateway.site.addresses import Network, is_loopback, listening_host, networks, origin_of


class TlsSection(Section):
    """`[api.tls]`: the files that the interface is served over HTTPS with, in PEM form."""

    certificate: str = Field(min_length=1, description="the certificate, and those it hangs on, in one file")
    key: str = Field(min_length=1, description="its private key; only the gateway may read that file")

    def beside(self, folder: Path) -> TlsSection:
        """Return the section with relative paths taken from `folder`."""
        return TlsSection(certificate=str(folder / self.certificate), key=str(folder / self.key))


HostName = Annotated[
    str,
    following(
        r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?",
        "must be a name like gate.example.com, without https:// and port",
    ),
]


class ApiSection(Section):
    """`[api]`: address of the interface and the page."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    port: int = Field(default=8480, ge=0, le=65535, description="0 takes a free port")
    tls: TlsSection | None = None
    plain_http: bool = Field(default=False, description="true serves networks without TLS")
    trusted_proxies: tuple[str, ...] = Field(default=(), max_length=64, description="addresses or networks")
    host_names: tuple[HostName, ...] = Field(default=(), max_length=64, description="names it is reached under")
    public_url: str | None = Field(default=None, description="where clients find it, if behind a proxy: https://…")
    session_idle_minutes: int = Field(default=60, ge=1, le=10_080)
    session_hours: int = Field(default=24, ge=1, le=8760, description="a session ends after so long, used or not")

    @model_validator(mode="before")
    @classmethod
    def _without_accounts(cls, table: Any) -> Any:
        if isinstance(table, dict) and "accounts" in table:
            raise ValueError("accounts are kept in the register, not in the site file: see edge-gateway users")
        return table

    @field_validator("host")
    @classmethod
    def _listening(cls, value: str) -> str:
        return listening_host(value)

    @field_validator("public_url")
    @classmethod
    def _bare_origin(cls, value: str | None) -> str | None:
        return None if value is None else origin_of(value)

    @field_validator("trusted_proxies")
    @classmethod
    def _named_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        networks(value, whose="your proxies")
        return value

    @property
    def listens_on(self) -> str:
        """The host to serve on: `host` with TLS or `plain_http`, otherwise loopback only."""
        if self.tls is not None or self.plain_http or is_loopback(self.host):
            return self.host
        return "::1" if ":" in self.host else "127.0.0.1"

    @property
    def is_reached_from_elsewhere(self) -> bool:
        """True if other machines can reach the interface, directly or through a proxy."""
        return not is_loopback(self.listens_on) or self.public_url is not None or bool(self.trusted_proxies)

    def proxies(self) -> tuple[Network, ...]:
        """Return `trusted_proxies` as networks; a single address is a network of one."""
        return networks(self.trusted_proxies, whose="your proxies")
