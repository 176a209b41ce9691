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
"""Of the paths of the legacy family."""
EVERYTHING = "*"
"""The permission of an account that may do all."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The permission rule of an operation.

    Attributes:
        session: whether a session is needed at all.
        groups: of every group of permissions, at least one.
        whole: whether the session's second factor, if it has one, must be proven.
        depending: permissions of which a request may need one or another, by what it asks; its answerer decides.
        everything: whether it takes an account that may do all.
        confirmed: whether the interface names the permission. Where it does not, whoever answers decides; what the
            gateway itself answers may have groups of its own.
    """

    session: bool = True
    groups: tuple[tuple[str, ...], ...] = ()
    whole: bool = True
    depending: tuple[str, ...] = ()
    everything: bool = False
    confirmed: bool = True

    def __and__(self, other: Rule) -> Rule:
        """Both rules must hold."""
        return Rule(
            session=self.session or other.session,
            groups=self.groups + other.groups,
            whole=self.whole or other.whole,
            depending=self.depending + other.depending,
            everything=self.everything or other.everything,
            confirmed=self.confirmed and other.confirmed,
        )

    def missing(self, permissions: AbstractSet[str]) -> tuple[str, ...]:
        """Return the first group of which `permissions` holds none, or an empty one when the rule is met."""
        if EVERYTHING in permissions:
            return ()
        if self.everything:
            return ("every permission",)
        return next((group for group in self.groups if permissions.isdisjoint(group)), ())

    @property
    def text(self) -> str:
        """The rule in words, as the interface writes it."""
        several = len(self.groups) > 1
        groups = " and ".join(
            f"({' or '.join(group)})" if several and len(group) > 1 else " or ".join(group) for group in self.groups
        )
        if self.depending and self.groups == (self.depending,):
            groups = f"{' / '.join(self.depending)} (depends on the request)"
        elif self.depending:
            groups = f"{groups} (a request may also need {', '.join(self.depending)})"
        words = [] if self.confirmed else ["unconfirmed"]
        if self.everything:
            groups = "everything"
        words += [groups] if groups else ["none"] if self.confirmed else []
        return ": ".join(words) + ("" if self.session else ", no session")


OPEN = Rule(session=False, whole=False)
NO_SESSION = Rule(session=False, whole=False, confirmed=False)
"""No session is needed, and central decides."""
SIGNED_IN = Rule()
UNCONFIRMED = Rule(confirmed=False)
HALF_SIGNED_IN = Rule(whole=False)
"""A session, also one whose second factor is not proven yet."""


def needs(*permissions: str) -> Rule:
    """Require a session with at least one of these permissions."""
    return Rule(groups=(permissions,))


def either(*permissions: str) -> Rule:
    """Require a session with at least one of these permissions; the request decides which."""
    return Rule(groups=(permissions,), depending=permissions)


def may_also_need(*permissions: str) -> Rule:
    """Extend a rule: requests of some kinds need one of these as well."""
    return Rule(depending=permissions)


class ViewKind(Enum):
    """Kinds of footage that an address with a token opens."""

    WATCH = 1
    """The beginning of watching a camera by WebRTC."""
    LIVE = 2
    """A camera's live playlists and their segments."""
    RECORDED = 3
    """A camera event's clip, its playlists and their segments."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface.

    Handlers validate with the models that are published here.

    Attributes:
        method: the HTTP method; a GET operation with `head` answers HEAD too.
        path: with `{id}` and the like in braces.
        rule: who may call.
        resource: the field that is null in the error envelope; "" for none.
        purpose: what it is for, one line without a full stop.
        body: what a JSON body is validated with; None when there is none, or none is published.
        body_type: the media type of the body, which is no JSON when it is another one.
        query: what the query is validated with.
        answer: the whole JSON body of a success; None when it is not JSON, or none is published.
        answer_type: the media type of a success.
        other_types: media types that a success may have instead.
        status: the status of a success.
        refuses: statuses of its refusals besides those that every operation of its kind has.
        reads: whether a POST changes nothing, as the interface's lists and single records: a session cookie is then
            enough. Where the interface leaves it open, a POST counts as a write.
        answered_by: the gateway itself, or central through it.
        view: of a GET: what a token in the address opens without a session. It answers OPTIONS too, for players in
            pages of other origins.
        page: of what central answers: a page for people may come, or the way to one.
        signs_in: of what central answers: it may begin a session; a page may come too.
        by_key: a program enters with its key, as in the legacy family.
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
        """True when a foreign page could do harm with it."""
        return not self.reads and self.method not in ("GET", "OPTIONS")
