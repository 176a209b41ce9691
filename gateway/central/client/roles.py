"""What central's `role` allows here. Its form is not published, so the site file says where and how to read it.

Without a word in the site file these are read, in the role itself or in its `permissions`: a list of names, a list of
objects that name one each, or an object whose fields are true or false. What is no permission of the interface, and
what is not plainly granted, allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from gateway.domain.accounts import is_permission

_MOST = 1000
_NAMES = ("name", "key", "permission", "code", "slug")
_GRANTS = ("enabled", "allowed", "granted", "value", "active")
_TITLES = ("name", "title", "label")
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class RoleMap:
    """How to read a role.

    Attributes:
        paths: where the permissions are, with dots between names; "" is the role itself.
        names: what central calls something → the interface's names for it.
        roles: what a role of this name allows besides.
    """

    paths: tuple[str, ...] = ("", "permissions")
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def name_of(role: JsonValue) -> str:
    """What the role is called; "" when it does not say."""
    if isinstance(role, dict):
        role = next((role[title] for title in _TITLES if isinstance(role.get(title), str)), "")
    return " ".join(role.split())[:_LONGEST_TITLE] if isinstance(role, str) else ""


def permissions_of(role: JsonValue, how: RoleMap) -> frozenset[str]:
    """What the role allows, as names of the interface."""
    found = {name for path in how.paths for granted in _granted(_at(role, path)) for name in _meant(granted, how)}
    found |= {name for name in how.roles.get(name_of(role), ()) if is_permission(name)}
    return frozenset(sorted(found)[:_MOST])


def _at(role: JsonValue, path: str) -> JsonValue:
    for step in path.split(".") if path else ():
        role = role.get(step) if isinstance(role, dict) else None
    return role


def _granted(value: JsonValue) -> Iterator[str]:
    """Names that are granted, in whichever form they come."""
    if isinstance(value, dict):
        yield from (name for name, granted in value.items() if granted is True or granted == 1)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict) and _is_granted(item):
                yield from (name for key in _NAMES if isinstance(name := item.get(key), str))


def _is_granted(item: Mapping[str, JsonValue]) -> bool:
    """An object that is there is granted, unless one of its fields says otherwise."""
    return all(item[key] is True or item[key] == 1 for key in _GRANTS if key in item)


def _meant(granted: str, how: RoleMap) -> tuple[str, ...]:
    if granted in how.names:
        return tuple(name for name in how.names[granted] if is_permission(name))
    return (granted,) if is_permission(granted) else ()
