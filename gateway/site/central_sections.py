"""Sections for the lines up from the site: `[central]`, `[fleet]` and `[mqtt]`.

`[central]` is the service above, its accounts here, and its events that command gates. `[fleet]` names the NATS servers
that connect the gateways of many sites, and whose commands they bring. `[mqtt]` is the broker that gets a mirror.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from drivers.settings import Name, SecretName, Section, Slug
from gateway.site.addresses import Endpoint, endpoint_of
from gateway.site.fields import NamesAuthorities, Permission

_PLAIN, _TLS = "nats", "tls"
_USER_PREFIX = 20 << 3
_RAW_BYTES = 35
_USER_KEY = re.compile(r"U[A-Z2-7]{55}")


_SEED = re.compile(r"SU[A-Z2-7]{56}")
_JWT_PARTS = ("BEGIN NATS USER JWT", "BEGIN USER NKEY SEED")

_MQTT, _MQTTS = "mqtt", "mqtts"
_Topic = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,40}(/[A-Za-z0-9_.-]{1,40}){0,4}$")]


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


def is_seed(secret: str) -> bool:
    """Return whether a secret has the form of a user's NKey seed."""
    return _SEED.fullmatch(secret.strip()) is not None


def is_jwt_file(secret: str) -> bool:
    """Return whether a secret is the text of a JWT credentials file."""
    return all(part in secret for part in _JWT_PARTS)


def _user_key(value: str) -> str:
    raw = base64.b32decode(value + "=" * (-len(value) % 8)) if _USER_KEY.fullmatch(value) else b""
    if (
        len(raw) != _RAW_BYTES
        or raw[0] != _USER_PREFIX
        or binascii.crc_hqx(raw[:-2], 0).to_bytes(2, "little") != raw[-2:]
    ):
        raise ValueError("must be the public NKey of a user: 56 letters and digits that begin with U")
    return value


class FleetSender(Section):
    """`[[fleet.senders]]`: who signs commands with this key acts with the rights of this account of the site."""

    key: Annotated[str, AfterValidator(_user_key)] = Field(description="the sender's public NKey, `U…`")
    account: Name = Field(description="an account of the site; without its rights a command is refused")


class FleetSection(Section):
    """`[fleet]`: the NATS servers of the fleet. Without this section the gateway stands alone."""

    urls: tuple[str, ...] = Field(
        min_length=1, max_length=8, description="`tls://host:port` of each server; `nats://` on this machine only"
    )
    site: Slug = Field(description="the site's name in subjects; the gateways of a site share it")
    gateway: Slug = Field(description="this gateway's name in subjects")
    credentials: SecretName | None = Field(
        default=None, description="an NKey seed `SU…`, or the text of a JWT credentials file"
    )
    ca_file: Annotated[str, NamesAuthorities(loss="there is no line to the fleet")] | None = Field(
        default=None, description="authorities to trust instead of the usual ones"
    )
    claim_ms: int = Field(
        default=150, ge=20, le=2000, description="so long a gate waits for a claim in a shared area, in milliseconds"
    )
    senders: tuple[FleetSender, ...] = Field(default=(), max_length=64, description="who may send commands")

    @field_validator("urls")
    @classmethod
    def _encrypted(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            if not _endpoint(url).is_this_machine() and not url.startswith(f"{_TLS}://"):
                raise ValueError("must be tls://…: unencrypted, others could read events and forge commands")
        return value

    @field_validator("senders")
    @classmethod
    def _each_key_once(cls, value: tuple[FleetSender, ...]) -> tuple[FleetSender, ...]:
        if len({sender.key for sender in value}) < len(value):
            raise ValueError("has a key twice: each sender has a key of its own")
        return value

    @model_validator(mode="after")
    def _with_credentials(self) -> Self:
        if self.credentials is None and not all(endpoint.is_this_machine() for endpoint in self.endpoints()):
            raise ValueError("'credentials' is missing: a server elsewhere must know which gateway it serves")
        return self

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return host and port of each server."""
        return tuple(_endpoint(url) for url in self.urls)


def _endpoint(url: str) -> Endpoint:
    return endpoint_of(url, schemes=(_TLS, _PLAIN))


class MqttSection(Section):
    """`[mqtt]`: an MQTT 5 broker that gets events, states and the verdict. Nothing is taken from it."""

    url: str = Field(description="`mqtts://host:port`; `mqtt://` on this machine, or with `plain_mqtt`")
    site: Slug = Field(description="the site's name in topics")
    gateway: Slug = Field(description="this gateway's name in topics")
    topic: _Topic = Field(default="edge-gateway", description="topics begin with this")
    username: Name | None = Field(default=None, description="the gateway's user at the broker")
    password: SecretName | None = Field(default=None, description="the user's password")
    certificate: str | None = Field(default=None, description="a client certificate in PEM form, if the broker asks")
    key: str | None = Field(default=None, description="its private key; only the gateway may read that file")
    ca_file: Annotated[str, NamesAuthorities(loss="there is no line to the MQTT broker")] | None = Field(
        default=None, description="authorities to trust instead of the usual ones"
    )
    plain_mqtt: bool = Field(default=False, description="true allows a network without TLS")

    @field_validator("url")
    @classmethod
    def _is_broker(cls, value: str) -> str:
        _broker(value)
        return value

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if not self.is_encrypted and not self.plain_mqtt and not self.endpoint().is_this_machine():
            raise ValueError(
                "'url' must be mqtts://…, or plain_mqtt = true if events and the password may cross it unencrypted"
            )
        if (self.certificate is None) is not (self.key is None):
            raise ValueError("'certificate' and 'key' belong together")
        if self.certificate is not None and not self.is_encrypted:
            raise ValueError("'certificate' needs mqtts://…")
        if self.password is not None and self.username is None:
            raise ValueError("'username' is missing: whose password is it?")
        return self

    @property
    def is_encrypted(self) -> bool:
        """True if the line has TLS."""
        return self.url.lower().startswith(f"{_MQTTS}://")

    def endpoint(self) -> Endpoint:
        """Return the broker's host and port."""
        return _broker(self.url)


def _broker(url: str) -> Endpoint:
    return endpoint_of(url, schemes=(_MQTTS, _MQTT))
