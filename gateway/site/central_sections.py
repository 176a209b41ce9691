"""`[central]`: the service above, its accounts here, and its events that command gates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from drivers.settings import Name, SecretName, Section
from gateway.site.addresses import Endpoint, endpoint_of
from gateway.site.fields import NamesAuthorities, Permission


class CentralAccountsSection(Section):
    """`[central.accounts]`: central's accounts here, and how their permissions are read from central's `role`."""

    sign_in: bool = Field(default=True, description="whether they may sign in here")
    remember_days: float = Field(
        default=7, ge=0, le=90, description="one that signed in may do so for so long while central is offline; 0: not"
    )
    permissions_in: tuple[str, ...] = Field(
        default=("", "permissions"), description="where in the role; a path with dots, '' for the role itself"
    )
    names: dict[str, tuple[Permission, ...]] = Field(default={}, description="central's name → the interface's")
    roles: dict[str, tuple[Permission, ...]] = Field(default={}, description="role by name → what it allows besides")


class CentralCommand(Section):
    """`[[central.commands]]`: events of central with these numbers command the gate that they are about."""

    type: int = Field(strict=True)
    category: int | None = Field(default=None, strict=True, description="none: whatever it is")
    subcategory: int | None = Field(default=None, strict=True)
    action: Literal["open", "close", "stop"]


CardField = Literal[
    "printed",
    "facility",
    "number",
    "status",
    "enabled",
    "deleted",
    "valid_from",
    "valid_until",
    "layout",
    "uid",
    "plate",
    "zones",
    "schedules",
    "owner",
    "first_person",
    "duress",
    "pin",
    "holder",
]


class CentralSection(Section):
    """`[central]`: the service above. Without this section the site stands alone."""

    url: str
    username: Name
    password: SecretName
    totp: SecretName | None = Field(default=None, description="the authenticator's secret, if the account has one")
    ca_file: Annotated[str, NamesAuthorities(loss="there is no line to central")] | None = None
    pull_seconds: float = Field(default=60, ge=0.5, le=86_400)
    card_delay_seconds: float | None = Field(
        default=None,
        ge=0.5,
        le=86_400,
        description="while nothing changes, pulls may become as rare as this; none: `pull_seconds`",
    )
    requests_per_second: float = Field(default=20, ge=1, le=10_000, description="pace of the gateway's own requests")
    pull_bytes_per_second: int = Field(
        default=1_000_000, ge=10_000, le=1_000_000_000, description="average bandwidth that pulls may take"
    )
    timeout_seconds: float = Field(default=15, ge=1, le=120)
    write_may_take_seconds: float = Field(
        default=60, ge=0, le=3600, description="so long central may still carry out a write whose answer was lost"
    )
    ask_person_hours: float = Field(
        default=24, ge=0, le=720, description="after so long a person is asked whether central has a lost write"
    )
    backlog_gigabytes: float = Field(
        default=2, ge=0.01, le=1000, description="disk space of what waits for central before direct writes are refused"
    )
    relay_megabytes: int = Field(default=256, ge=1, le=10_240, description="largest body that is relayed, either way")
    clock_alert_seconds: float = Field(default=30, ge=2, le=86_400, description="clocks that differ by more are told")
    accounts: CentralAccountsSection = CentralAccountsSection()
    card_fields: dict[CardField, tuple[Name, ...]] = Field(
        default={}, description="under which names central's cards have them, the likelier first; a dot goes deeper"
    )
    commands: tuple[CentralCommand, ...] = Field(default=(), description="central's events that command a gate")
    commands_every_seconds: float = Field(default=3, ge=0.5, le=60, description="how often they are asked for")
    commands_fresh_seconds: float = Field(default=20, ge=1, le=120, description="older events command nothing")

    @field_validator("url")
    @classmethod
    def _http(cls, value: str) -> str:
        endpoint_of(value, schemes=("http", "https"))
        return value.rstrip("/")

    @property
    def longest_pull_seconds(self) -> float:
        """The longest time from one pull to the next while central answers."""
        return max(self.pull_seconds, self.card_delay_seconds or 0.0)

    def endpoint(self) -> Endpoint:
        """Return host and port of central."""
        return endpoint_of(self.url, schemes=("http", "https"))
