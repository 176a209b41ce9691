"""Write `docs/log-codes.md`: every code of an error line in the log, what it means, and what to do.

Run it as `python scripts/log_codes.py`.
"""

from __future__ import annotations

from pathlib import Path

from gateway.runtime.log_codes import FOREIGN, LOG_CODES, LogCode

PAGE = Path(__file__).resolve().parents[1] / "docs" / "log-codes.md"
_HEAD = """# Codes of the log

Each error in the log has a code, and this page says what it means. What is wrong at the site now is in the list of
problems instead: see [Troubleshooting](troubleshooting.md).

As installed, the log goes to the journal with a field for each value:

```
journalctl -u edge-gateway -p err                 # errors alone
journalctl -u edge-gateway EG_CODE=EG302          # one code
journalctl -u edge-gateway EG_LANE=entry -o verbose
```

On a terminal it is text in colours, and elsewhere a JSON object a line, as in a container. Of equal lines 30 a minute
are written; a line `log_lines_held_back` then says how many more there were. No line has a password, a key or a PIN.

| code | line | means | what to do |
|---|---|---|---|
"""


def page() -> str:
    """Return the page as it should be."""
    rows = sorted([(one, f"`{event}`") for event, one in LOG_CODES.items()] + [(FOREIGN, "any other")], key=_number)
    return _HEAD + "".join(f"| {one.code} | {event} | {one.means} | {one.do} |\n" for one, event in rows)


def _number(row: tuple[LogCode, str]) -> str:
    return row[0].code


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
