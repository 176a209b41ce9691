"""Operations: method, path, permission rule, and the models of request and answer."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from pydantic import BaseModel

JSON = "application/json"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MULTIPART = "multipart/form-data"
FORM = "application/x-www-form-urlencoded"
LEGACY_PREFIX = "/api/v1/"
"""The start of every path of the legacy family."""
EVERYTHING = "*"
"""The permission that includes every other one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The permission rule of an operation.

    Attributes:
        session: whether the operation needs a session.
        groups: groups of permissions; the caller must have at least one permission of each group.
        whole: whether the session's second factor, if it has one, must be proven.
        depending: permissions of which some requests need one. Only the handler, or central, can tell which.
        everything: whether only an account with the permission `EVERYTHING` may call.
        confirmed: whether the interface's specification names the permission. Where it does not, central decides about
            what it answers; for what the gateway answers, `groups` may hold the gateway's own choice.
    """

    session: bool = True
    groups: tuple[tuple[str, ...], ...] = ()
    whole: bool = True
    depending: tuple[str, ...] = ()
    everything: bool = False
    confirmed: bool = True

    def __and__(self, other: Rule) -> Rule:
        """Combine two rules into one that is met when both are met."""
        return Rule(
            session=self.session or other.session,
            groups=self.groups + other.groups,
            whole=self.whole or other.whole,
            depending=self.depending + other.depending,
            everything=self.everything or other.everything,
            confirmed=self.confirmed and other.confirmed,
        )

    def missing(self, permissions: AbstractSet[str]) -> tuple[str, ...]:
        """Return the first group of which `permissions` holds none; an empty tuple when the rule is met.

        `session` and `whole` are not checked here, because they concern the caller's session.
        """
        if EVERYTHING in permissions:
            return ()
        if self.everything:
            return ("every permission",)
        return next((group for group in self.groups if permissions.isdisjoint(group)), ())

    @property
    def text(self) -> str:
        """The rule in words, as the interface's specification has it, but plainly whom its "none" means."""
        several = len(self.groups) > 1
        groups = " and ".join(
            f"({' or '.join(group)})" if several and len(group) > 1 else " or ".join(group) for group in self.groups
        )
        if self.depending and self.groups == (self.depending,):
            groups = f"{' / '.join(self.depending)} (depends on the request)"
        elif self.depending:
            groups = f"{groups} (a request may also need {', '.join(self.depending)})"
        if self.everything:
            groups = "everything"
        if not self.session:
            groups = "everybody, without a session"
        if self.confirmed:
            return groups or "any account"
        return f"unconfirmed: {groups}" if groups else "unconfirmed"


OPEN = Rule(session=False, whole=False)
NO_SESSION = Rule(session=False, whole=False, confirmed=False)
"""No session is needed, and central decides."""
SIGNED_IN = Rule()
UNCONFIRMED = Rule(confirmed=False)
HALF_SIGNED_IN = Rule(whole=False)
"""Needs a session; its second factor need not be proven yet."""
ADMINISTRATORS = Rule(everything=True)


def needs(*permissions: str) -> Rule:
    """Require a session with at least one of these permissions."""
    return Rule(groups=(permissions,))


VIEW_DEVICES = needs("can_view_devices")
CONTROL_DEVICES = needs("can_control_devices")
VIEW_EVENTS = needs("can_view_events")
VIEW_CAMERAS = needs("can_view_cameras")
VIEW_FOOTAGE = needs("can_view_camera_events")
VIEW_ENTRIES = needs("can_view_entries")
EDIT_ENTRIES = needs("can_edit_entries")
EDIT_SETTINGS = needs("can_edit_settings")
VIEW_CARDS = needs("can_view_access_cards", "can_view_guests")
ADD_CARDS = needs("can_add_access_cards", "can_add_guests")
EDIT_CARDS = needs("can_edit_access_cards", "can_edit_guests")
DELETE_CARDS = needs("can_delete_access_cards", "can_delete_guests")


class ViewKind(Enum):
    """Kinds of footage that an address with a token opens."""

    WATCH = 1
    """The start of a WebRTC view of a camera."""
    LIVE = 2
    """A camera's live playlists and their segments."""
    RECORDED = 3
    """A camera event's clip, its playlists and their segments."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface.

    The OpenAPI description is made from the models named here, and handlers validate with the same ones.

    Attributes:
        method: the HTTP method; a GET operation with `head` answers HEAD too.
        path: the path, with parameters in braces, such as `{id}`.
        rule: who may call.
        resource: the field that is null in the error envelope; "" for none.
        head: whether a GET operation answers HEAD too.
        purpose: one line for the OpenAPI summary, without a full stop.
        body: the model that validates a JSON body; None when there is no body, or its model is not published.
        body_type: the media type of the body; `body` describes it only when it is JSON.
        query: the model that validates the query; None when the operation takes none.
        answer: the model of a success's whole JSON body; None when it is not JSON, or its model is not published.
        answer_type: the media type of a success.
        other_types: other media types that a success may have.
        status: the HTTP status of a success.
        refuses: statuses of refusals besides those that every operation of this kind may give.
        reads: whether a POST changes nothing, as for the interface's lists and single records. Where the specification
            leaves it open, a POST counts as a write.
        answered_by: the gateway itself, or central through the gateway.
        view: for a GET, the footage that a token in the address opens without a session. The path then answers OPTIONS
            too, for players in pages of other origins.
        page: whether central may answer with an HTML page, or with a redirection to one.
        signs_in: whether central's answer may begin a session; it may be an HTML page too.
        by_key: whether programs call it with their API key, as in the legacy family.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    path: str
    rule: Rule
    resource: str = ""
    head: bool = False
    purpose: str = ""
    body: type[BaseModel] | None = None
    body_type: str = JSON
    query: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    answer_type: str = JSON
    other_types: tuple[str, ...] = ()
    status: int = 200
    refuses: tuple[int, ...] = ()
    reads: bool = False
    answered_by: Literal["gateway", "central"] = "gateway"
    page: bool = False
    view: ViewKind | None = None
    signs_in: bool = False
    by_key: bool = False

    @property
    def writes(self) -> bool:
        """True when a request may change something."""
        return not self.reads and self.method not in ("GET", "OPTIONS")
