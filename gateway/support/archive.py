"""The file of a support bundle: named texts, each masked, in a compressed archive. Pure."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping

from pydantic_core import to_jsonable_python

from gateway.support.masking import Masking

MOST_BYTES = 4_000_000
_README = """Support bundle of an edge gateway.

Cut out: secrets, accounts and queries in addresses, keys, tokens, PINs, comments of the site file, and the numbers of
cards but their last two digits. Texts of events still name people and plates: pass it on only to whom they may know.
"""


def json_text(value: object, masking: Masking | None = None) -> str:
    """Return a value as JSON; with `masking`, its secrets and card numbers are masked."""
    plain = to_jsonable_python(value, fallback=str, inf_nan_mode="strings")
    shown = plain if masking is None else masking.value("", plain)
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def archive(texts: Mapping[str, str], *, name: str, at: int, masking: Masking) -> bytes:
    """Pack the texts, by file name, into an archive with a folder of this name.

    Each text is masked once more; of a text over 4 MB only the end is kept. `at` is the files' time in seconds since
    1970.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for file, text in {"README.txt": _README, **texts}.items():
            content = masking.text(text).encode(errors="replace")[-MOST_BYTES:]
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mtime, entry.mode = len(content), at, 0o600
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
