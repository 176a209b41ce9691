"""Video cameras as a site file writes them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from drivers.settings import DevicePassword, Name, RecordId, SecretName, Section
from gateway.site.addresses import PLACE, Endpoint, endpoint_of

_RTSP = ("rtsp", "rtsps")
_WHEP = ("whep", "wheps")


class Camera(Section):
    """`[[cameras]]`: a video source. Credentials are named, never written in the URL.

    `rtsp://` or `rtsps://`, or `whep://` (over HTTP) and `wheps://` (over HTTPS) of a WebRTC camera.
    """

    id: RecordId
    name: Name
    url: str = Field(description="`{username}` and `{password}` stand for an account that its path or query holds")
    live_url: str | None = Field(default=None, description="a smaller H.264 stream of the same camera, for live view")
    username: str | None = None
    password: DevicePassword | None = None
    token: SecretName | None = Field(default=None, description="what a WebRTC camera asks for in place of an account")
    transport: Literal["tcp", "udp"] = "tcp"
    audio: Literal["off", "on"] = Field(default="off", description="record its sound too: AAC as it is, G.711 as AAC")
    record: Literal["continuous", "events"] = Field(default="continuous", description="events: only what they pin")
    pre_roll_seconds: int = Field(default=60, ge=5, le=600, description="held in memory for events to pin")

    @field_validator("url", "live_url")
    @classmethod
    def _video(cls, value: str | None) -> str | None:
        if value is not None:
            endpoint_of(value, schemes=(*_RTSP, *_WHEP), has_places=True)
        return value

    @model_validator(mode="after")
    def _one_account(self) -> Self:
        places = {place for url in self._urls() for place in PLACE.findall(url)}
        if (self.username is None) != (self.password is None) and places != {"password"}:
            raise ValueError("'username' and 'password' go together")
        if self.password is None and places:
            raise ValueError("'url' has a place for the account, so 'username' and 'password' are needed")
        if self.token is not None and not all(_scheme(url) in _WHEP for url in self._urls()):
            raise ValueError("only what is at whep:// or wheps:// takes a 'token'")
        if self.token is not None and self.username is not None:
            raise ValueError("either 'token', or 'username' and 'password'")
        if self.audio == "on" and _scheme(self.url) in _WHEP:
            raise ValueError("'audio' is recorded from rtsp:// and rtsps:// alone: WebRTC sends it in another form")
        if self.live_url == self.url:
            raise ValueError("'live_url' is 'url' itself; leave it out, and what is recorded is shown live")
        if self.live_url is not None and self.live_endpoint().host != self.endpoint().host:
            raise ValueError("'live_url' must be on the camera of 'url': its account goes there too")
        return self

    def endpoint(self) -> Endpoint:
        """Return host and port of the camera's stream."""
        return endpoint_of(self.url, schemes=(*_RTSP, *_WHEP), has_places=True)

    def live_endpoint(self) -> Endpoint:
        """Return host and port of the stream for live view: of `live_url`, else of `url`."""
        return endpoint_of(self.live_url or self.url, schemes=(*_RTSP, *_WHEP), has_places=True)

    def _urls(self) -> tuple[str, ...]:
        return (self.url,) if self.live_url is None else (self.url, self.live_url)


def _scheme(url: str) -> str:
    return url.partition(":")[0]
