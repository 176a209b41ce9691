"""How the operations that central answers are written down: a line each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from gateway.web.catalogue.operation import NO_SESSION, Operation, Rule, needs

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


def relayed(
    method: Method, path: str, rule: Rule, resource: str, purpose: str, *, page: bool = False, reads: bool = False
) -> Operation:
    """One operation of central's."""
    return Operation(method, path, rule, resource, purpose=purpose, reads=reads, answered_by="central", page=page)


def signing_in(method: Method, path: str, purpose: str) -> Operation:
    """Return one operation of central's that may begin a session."""
    return Operation(method, path, NO_SESSION, "session", purpose=purpose, answered_by="central", signs_in=True)


def posts(
    prefix: str,
    rule: Rule,
    resource: str,
    purposes: Iterable[tuple[str, str]],
    *,
    page: bool = False,
    reads: Collection[str] | Literal["all"] = (),
) -> tuple[Operation, ...]:
    """POST operations that share their rule: what comes after the prefix, and what it is for; which of them read."""
    return tuple(
        relayed("POST", prefix + suffix, rule, resource, purpose, page=page, reads=reads == "all" or suffix in reads)
        for suffix, purpose in purposes
    )


def kept(
    path: str, resource: str, permission: str, noun: str, methods: Iterable[Method] = ("PUT", "PATCH", "DELETE")
) -> tuple[Operation, ...]:
    """Creating, changing and deleting records, each with its own permission: `can_add_<permission>` and so on."""
    verbs = {"PUT": ("add", "Create"), "PATCH": ("edit", "Update"), "DELETE": ("delete", "Delete")}
    chosen = ((method, *verbs[method]) for method in methods)
    return tuple(
        relayed(method, path, needs(f"can_{verb}_{permission}"), resource, f"{word} {noun}")
        for method, verb, word in chosen
    )
