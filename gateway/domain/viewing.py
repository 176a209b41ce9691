"""Types of live viewing that gateway and camera workers share: WHEP sessions over the worker's Unix socket.

WHEP is draft-ietf-wish-whep: a viewer offers SDP and gets an answer, an unguessable session id and the tag of its ICE
session. The gateway speaks HTTP with viewers; the worker, which has the pictures, speaks WebRTC with them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import GatewayError
from gateway.texts import Words

LONGEST_OFFER = 200_000
LONGEST_FRAGMENT = 100_000


class _ViewWire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ViewRefusal(StrEnum):
    """Reason for refusing a viewer's request."""

    BAD_OFFER = "bad_offer"
    """The SDP, or a fragment of it, is not valid."""
    NOT_ACCEPTABLE = "not_acceptable"
    """The viewer accepts no codec that the camera sends."""
    NO_SOURCE = "no_source"
    """The camera sends nothing now, but may later."""
    FULL = "full"
    """As many viewers as are allowed are watching already."""
    UNKNOWN = "unknown"
    """There is no such session, or it has ended."""
    NO_TAG = "no_tag"
    """The request does not name the ICE session that it is for."""
    STALE_TAG = "stale_tag"
    """The request is for another ICE session."""
    RESTART = "restart"
    """ICE restarts are not supported: the viewer must end the session and begin another."""


class NotShown(GatewayError):
    """A viewer's request was refused: the reason, and one sentence."""

    def __init__(self, refusal: ViewRefusal, sentence: Words) -> None:
        super().__init__(sentence)
        self.refusal = refusal


class LiveViewing(_ViewWire):
    """Settings for live viewers.

    `addresses`: the addresses of the machine that are offered to viewers; empty: all of them.
    """

    addresses: tuple[str, ...] = ()
    viewers_per_camera: int = Field(default=8, ge=0, le=100)


class OpenView(_ViewWire):
    """`POST /views`: open a live view of a camera for this offer.

    `address`: the viewer's own address, the only one that is asked whether it is reached; "" for none.
    """

    camera_id: int
    address: str = Field(default="", max_length=100)
    offer: str = Field(max_length=LONGEST_OFFER, repr=False)


class ViewOpened(_ViewWire):
    """Answer to `OpenView`. `view` is secret: whoever knows it can end the session."""

    view: str = Field(repr=False)
    tag: str
    answer: str = Field(repr=False)
    viewers: int = Field(default=1, description="the worker's views, this one included")


class TrickleView(_ViewWire):
    """`PATCH /views/{view}`: more of the viewer's candidates, as `application/trickle-ice-sdpfrag` (RFC 8840)."""

    tags: tuple[str, ...] = Field(default=(), description="entity tags that the request is for, unquoted; `*`: any")
    fragment: str = Field(max_length=LONGEST_FRAGMENT, repr=False)


class ViewRefused(_ViewWire):
    """Body of a worker's answer 409 to a viewer's request."""

    refusal: ViewRefusal
    error: str
