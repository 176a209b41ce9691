"""The memory that an object holds: for tests of objects that must not grow without end."""

from __future__ import annotations

import gc
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_bytes(thing: object) -> int:
    """Return the bytes of the object and of all that it leads to, code aside."""
    seen, left, size = set(), [thing], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, _SHARED):
            continue
        seen.add(id(one))
        size += sys.getsizeof(one)
        left += gc.get_referents(one)
    return size
