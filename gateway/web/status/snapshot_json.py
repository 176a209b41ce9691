"""A snapshot as JSON, whole or as the difference from an earlier one. Pure.

Differences save sending the whole snapshot to every open page each time a single value changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter

from gateway.texts import texts_in
from gateway.web.problems import problem_texts
from gateway.web.status.snapshot import Snapshot

_HINTS = get_type_hints(Snapshot, include_extras=True)
_KEYS: Mapping[str, Callable[[Any], str]] = {
    "problems": lambda problem: "/".join(problem.key),
    "lanes": lambda lane: lane.lane_id,
    "areas": lambda area: area.area_id,
    "devices": lambda device: str(device.device_id),
    "cameras": lambda camera: str(camera.camera_id),
    "events": lambda event: str(event.id),
}
"""The lists of which changed rows are sent singly, and the key of a row. The page has the same table."""
_ROWS = {name: TypeAdapter(get_args(_HINTS[name])[0]) for name in _KEYS}
_WHOLE = {name: TypeAdapter(hint) for name, hint in _HINTS.items() if name not in _KEYS}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SnapshotJson:
    """The JSON of a snapshot's fields: fields in one piece (`whole`), and lists by row (`rows`, by key, in order).

    A difference from another snapshot is computed once and cached for all pages that ask for it.
    """

    whole: Mapping[str, bytes]
    rows: Mapping[str, Mapping[str, bytes]]
    _since: WeakKeyDictionary[SnapshotJson, bytes] = field(default_factory=WeakKeyDictionary, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotJson:
        """Serialise a snapshot."""
        return cls(
            {name: _with_said(name, adapter, getattr(snapshot, name)) for name, adapter in _WHOLE.items()},
            {
                name: {_KEYS[name](row): _with_said(name, adapter, row) for row in getattr(snapshot, name)}
                for name, adapter in _ROWS.items()
            },
        )

    def all(self) -> bytes:
        """Return the whole snapshot, as a JSON object without its braces."""
        lists = {name: b"[%b]" % b",".join(rows.values()) for name, rows in self.rows.items()}
        return _members({**self.whole, **lists})

    def since(self, before: SnapshotJson) -> bytes:
        """Return the fields that differ from `before`, as a JSON object without its braces; b"" if none does.

        A changed list has `put`, its new or changed rows, and, if rows came, went or moved, `keys`, the keys of all
        rows in order.
        """
        if (known := self._since.get(before)) is not None:
            return known
        changed = {name: value for name, value in self.whole.items() if before.whole[name] != value}
        for name, rows in self.rows.items():
            if (difference := _difference(before.rows[name], rows)) is not None:
                changed[name] = difference
        text = self._since[before] = _members(changed)
        return text


def _with_said(name: str, adapter: TypeAdapter[Any], value: Any) -> bytes:
    """Serialise a value, with its texts as `said`, for the page to make its language of them."""
    row, said = adapter.dump_json(value), problem_texts(value) if name == "problems" else texts_in(value)
    return b'%b,"said":%b}' % (row[:-1], _TEXTS.dump_json(said)) if said and row.endswith(b"}") else row


def _difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes | None:
    put = [row for key, row in after.items() if before.get(key) != row]
    keys = None if list(before) == list(after) else _STRINGS.dump_json(list(after))
    if not put and keys is None:
        return None
    return b'{"put":[%b]%b}' % (b",".join(put), b"" if keys is None else b',"keys":' + keys)


def _members(values: Mapping[str, bytes]) -> bytes:
    return b",".join(b'"%b":%b' % (name.encode(), value) for name, value in values.items())


_STRINGS = TypeAdapter(list[str])
_TEXTS = TypeAdapter(dict[str, Any])
