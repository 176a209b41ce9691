"""`[mqtt]`: the broker that gets a mirror of the site."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from drivers.settings import Name, SecretName, Section, Slug
from gateway.site.addresses import Endpoint, endpoint_of
from gateway.site.fields import NamesAuthorities

_PLAIN, _TLS = "mqtt", "mqtts"
_Topic = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,40}(/[A-Za-z0-9_.-]{1,40}){0,4}$")]


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
        _endpoint(value)
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
        return self.url.lower().startswith(f"{_TLS}://")

    def endpoint(self) -> Endpoint:
        """Return the broker's host and port."""
        return _endpoint(self.url)


def _endpoint(url: str) -> Endpoint:
    return endpoint_of(url, schemes=(_TLS, _PLAIN))
