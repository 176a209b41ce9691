"""Types of live viewing that the gateway and its camera workers share: WHEP sessions over the worker's Unix
socket.

WHEP is draft-ietf-wish-whep: a viewer offers SDP and gets an answer, an unguessable session and the tag of its ICE
session. The gateway speaks HTTP with viewers; the worker, which has the pictures, speaks WebRTC with them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import GatewayError


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ViewRefusal(StrEnum):
    """Reason for refusing a viewer's request."""

    BAD_OFFER = "bad_offer"
    """The SDP, or a fragment of it, makes no sense."""
    NOT_ACCEPTABLE = "not_acceptable"
    """What the camera sends and what the viewer takes do not meet."""
    NO_SOURCE = "no_source"
    """The camera sends nothing now; later it may."""
    FULL = "full"
    """As many viewers as are allowed watch already."""
    UNKNOWN = "unknown"
    """There is no such session, or it has ended."""
    NO_TAG = "no_tag"
    """The request must name the ICE session it is for."""
    STALE_TAG = "stale_tag"
    """The request is for another ICE session."""
    RESTART = "restart"
    """ICE restarts are not supported: the viewer is to end the session and begin another."""


class NotShown(GatewayError):
    """A viewer's request was refused: the reason, and one sentence."""

    def __init__(self, refusal: ViewRefusal, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = refusal


class LiveViewing(_Wire):
    """Settings for live viewers.

    `addresses`: those of the machine's addresses that are offered to viewers; none named: all of them.
    """

    addresses: tuple[str, ...] = ()
    viewers_per_camera: int = Field(default=8, ge=0, le=100)


class OpenView(_Wire):
    """`POST /views`: open a live view of a camera for this offer."""

    camera_id: int
    offer: str = Field(max_length=200_000, repr=False)


class ViewOpened(_Wire):
    """An opened view. `view` is secret: its holder may end the session."""

    view: str = Field(repr=False)
    tag: str
    answer: str = Field(repr=False)


class TrickleView(_Wire):
    """`PATCH /views/{view}`: more of the viewer's candidates, as `application/trickle-ice-sdpfrag` (RFC 8840)."""

    tags: tuple[str, ...] = Field(default=(), description="entity tags that the request is for, unquoted; `*`: any")
    fragment: str = Field(max_length=100_000, repr=False)


class ViewRefused(_Wire):
    """Body of a worker's answer 409 to a viewer's request."""

    refusal: ViewRefusal
    error: str
