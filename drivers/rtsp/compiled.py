"""The choice of compiled functions over the same ones in Python, made once, at import.

The module `_fast` is made from `_fast.c` where a compiler is at hand. It holds functions with the names of those in
Python, which are the reference: a test holds both to equal results.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")
_REFUSED_BY = "EDGE_GATEWAY_WITHOUT_COMPILED"
"""An environment variable: set to anything, it keeps the functions in Python."""

try:
    _fast = None if os.environ.get(_REFUSED_BY) else importlib.import_module("drivers.rtsp._fast")
except ImportError:  # installed without a compiler
    _fast = None


def compiled(reference: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Return the compiled function of the reference's name; the reference where there is none."""
    found: Callable[_Given, _Returned] = getattr(_fast, reference.__name__, reference)
    return found
