"""Video cameras as a site file writes them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from gateway.site.addresses import Endpoint, endpoint_of
from gateway.site.fields import Name, RecordId, SecretName
from gateway.site.fields import Section as _Section

_RTSP = ("rtsp", "rtsps")
_WHEP = ("whep", "wheps")


class Camera(_Section):
    """`[[cameras]]`: a video source. Credentials are named, never written in the URL.

    `rtsp://` or `rtsps://`, or `whep://` (over HTTP) and `wheps://` (over HTTPS) of a WebRTC camera.
    """

    id: RecordId
    name: Name
    url: str
    username: str | None = None
    password: SecretName | None = None
    token: SecretName | None = Field(default=None, description="what a WebRTC camera asks for in place of an account")
    transport: Literal["tcp", "udp"] = "tcp"

    @field_validator("url")
    @classmethod
    def _video(cls, value: str) -> str:
        endpoint_of(value, schemes=(*_RTSP, *_WHEP))
        return value

    @model_validator(mode="after")
    def _one_account(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("'username' and 'password' go together")
        if self.token is not None and not self.is_webrtc:
            raise ValueError("only a camera at whep:// or wheps:// takes a 'token'")
        if self.token is not None and self.username is not None:
            raise ValueError("either 'token', or 'username' and 'password'")
        return self

    @property
    def is_webrtc(self) -> bool:
        """Whether it is read by WHEP."""
        return self.url.partition(":")[0] in _WHEP

    def endpoint(self) -> Endpoint:
        """Where it is connected to."""
        return endpoint_of(self.url, schemes=(*_RTSP, *_WHEP))
