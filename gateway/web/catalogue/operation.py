"""What an operation is: method, path, who may call, and the resource that the error envelope names."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

EVERYTHING = "*"
"""The permission of an account that may do all."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call: of every group of permissions, at least one.

    `session`: whether a session is needed at all; `whole`: whether its second factor, if it has one, must be proven.
    """

    session: bool = True
    groups: tuple[tuple[str, ...], ...] = ()
    whole: bool = True

    def __and__(self, other: Rule) -> Rule:
        """Both rules must hold."""
        return Rule(
            session=self.session or other.session,
            groups=self.groups + other.groups,
            whole=self.whole or other.whole,
        )

    def missing(self, permissions: AbstractSet[str]) -> tuple[str, ...]:
        """The first group of which `permissions` holds none, or an empty one when the rule is met."""
        if EVERYTHING in permissions:
            return ()
        return next((group for group in self.groups if permissions.isdisjoint(group)), ())


OPEN = Rule(session=False, whole=False)
SIGNED_IN = Rule()
HALF_SIGNED_IN = Rule(whole=False)
"""A session, also one whose second factor is not proven yet."""


def needs(*permissions: str) -> Rule:
    """A session with at least one of these permissions."""
    return Rule(groups=(permissions,))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface.

    Attributes:
        method: the HTTP method; a GET operation with `head` answers HEAD too.
        path: with `{id}` and the like in braces.
        rule: who may call.
        resource: the field that is null in the error envelope; "" for none.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    path: str
    rule: Rule
    resource: str = ""
    head: bool = False

    @property
    def writes(self) -> bool:
        """Whether a foreign page could do harm with it. Reads are POST too, so the method decides."""
        return self.method not in ("GET", "OPTIONS")
