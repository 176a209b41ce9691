"""`[fleet]`: the NATS servers that connect the gateways of many sites, and whose commands they may carry."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from drivers.settings import Name, SecretName, Section, Slug
from gateway.site.addresses import Endpoint, endpoint_of
from gateway.site.fields import NamesAuthorities

_PLAIN, _TLS = "nats", "tls"
_USER_PREFIX = 20 << 3
_RAW_BYTES = 35
_USER_KEY = re.compile(r"U[A-Z2-7]{55}")


_SEED = re.compile(r"SU[A-Z2-7]{56}")
_JWT_PARTS = ("BEGIN NATS USER JWT", "BEGIN USER NKEY SEED")


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
