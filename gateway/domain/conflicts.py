"""Conflicts between changes at the site and at central, and which value counts. Pure.

A waiting change carries the values that its fields had before it. If central has another value now, both sides changed
the field. Then the site's value counts, with one exception: a right that central took away meanwhile is not given back,
not even by a later change of the site. A field that the site's change sent back unchanged keeps central's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from gateway.domain.writes import (
    CARD_LIFECYCLE,
    Effect,
    JsonObject,
    WaitingWrite,
    WriteOperation,
    alike,
    changed_by,
)

READS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "access_card": "/v1/access",
        "device": "/v1/device",
        "camera": "/v1/camera",
        "camera_event": "/v1/camera/event",
    }
)
"""Operations of central that return one record of a kind by its id. For other kinds no conflict can be found."""

_SECRETS = frozenset({"pin", "pin_code"})
_GIVES: Mapping[str, JsonValue] = MappingProxyType({"status": "active", "enabled": True})
_BESIDE_STATE = "reason"
_NOTHING: Final[tuple[JsonValue, ...]] = (None, "", [])


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that both sides changed.

    Attributes:
        field: the field's name.
        was: its value before both changes.
        here: the site's value, in words.
        central: central's value, in words.
        centrals_counts: whether central's value counts, so that the site's is not sent.
        of_rights: whether the field gives or takes a right; the site's later changes of it are then also judged from
            `was` on, so that they do not give back a right that central took away.
    """

    field: str
    was: JsonValue
    here: str
    central: str
    centrals_counts: bool
    of_rights: bool = False

    def sentence(self) -> str:
        """Return the conflict in a sentence for people."""
        counts = "central's" if self.centrals_counts else "the site's"
        return f"{self.field}: {self.here} here, {self.central} at central; {counts} counts"


@dataclass(frozen=True, slots=True)
class Settled:
    """The part of a change to send, without fields for which central's value counts, and the conflicts."""

    body: JsonObject
    conflicts: tuple[Conflict, ...]


def settle(operation: WriteOperation, body: JsonObject, base: JsonObject, theirs: JsonObject) -> Settled:
    """Compare a change that waited with central's present record.

    Args:
        operation: the kind of change.
        body: the fields of the change.
        base: their values at the site before the change; a field that is missing here is never a conflict.
        theirs: central's record.
    """
    conflicts: list[Conflict] = []
    yielded: set[str] = set()
    for name, was in base.items():
        if name not in body or name not in theirs or name == "id":
            continue
        ours, now = body[name], theirs[name]
        if _same(was, now) or _same(ours, now):
            continue
        if _same(ours, was) and operation is not CARD_LIFECYCLE:
            yielded.add(name)  # the site has not changed it, only sent back what it was shown
            continue
        right = operation.kind == CARD_LIFECYCLE.kind and name in _GIVES
        central = right and ours == _GIVES[name]
        if right and was in _NOTHING and now == _GIVES[name]:
            continue  # central has given a new card the state that cards begin with
        conflicts.append(Conflict(name, was, _shown(name, ours), _shown(name, now), central, of_rights=right))
    if centrals := {conflict.field for conflict in conflicts if conflict.centrals_counts}:
        yielded |= {*centrals, _BESIDE_STATE}
    return Settled({name: value for name, value in body.items() if name not in yielded}, tuple(conflicts))


def laid_over(record: JsonObject, waiting: Sequence[WaitingWrite]) -> JsonObject | None:
    """Return central's record with the waiting writes applied; None when the site has deleted it.

    Conflicts are settled as they are when the writes are sent. So a refused change, which may wait for long, does not
    hide that central took a right away since.
    """
    shown: JsonObject | None = record
    rights: JsonObject = {}
    for write in waiting:
        if write.operation.effect is Effect.DELETE:
            shown = None
        elif write.operation.effect is Effect.CHANGE and shown is not None:
            base = write.base | {name: was for name, was in rights.items() if name in write.base}
            settled = settle(write.operation, write.body, base, shown)
            rights |= {conflict.field: conflict.was for conflict in settled.conflicts if conflict.of_rights}
            shown = changed_by(shown, settled.body)
    return shown


def before_waiting(record: JsonObject, waiting: Sequence[WaitingWrite]) -> JsonObject:
    """Return the site's record without its waiting changes, so that they can be applied to it again.

    A value that is in none of the changes is central's, and stays.
    """

    def is_own(name: str) -> bool:
        return any(name in write.body and _same(record.get(name), write.body[name]) for write in waiting)

    bases = {name: was for write in reversed(waiting) for name, was in write.base.items()}
    return record | {name: was for name, was in bases.items() if is_own(name)}


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are alike, or both empty: services store empty values in different ways."""
    return alike(one, other) or (one in _NOTHING and other in _NOTHING)


def _shown(name: str, value: object) -> str:
    """Write a value for an event; never a secret."""
    return "***" if name in _SECRETS else repr(value)[:80]
