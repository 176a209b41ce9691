"""Writes `docs/interface-coverage.md` from the catalogue: `python scripts/interface_coverage.py`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from gateway.web.catalogue import OPERATIONS
from gateway.web.openapi import family
from gateway.web.operation import Operation
from gateway.web.relayed import OPERATIONS as RELAYED

PAGE = Path(__file__).resolve().parents[1] / "docs" / "interface-coverage.md"
_HEAD = """# What the interface has, and who answers

Made from the catalogue by `make docs`; a test fails when it is stale. The same catalogue makes `/openapi.json`, routes
requests and checks permissions.

- **The gateway** answers by itself, also while central is offline. **Central** answers through the gateway: the request
  goes there with the caller's own session at central, and the answer comes back as it is (`docs/relay.md`).
- **Kind**: a *write* changes something, a *read* does not, although many are `POST`.
- **Permission**: what the caller's role must have. *unconfirmed*: the interface does not say; central decides, or the
  gateway holds it as written behind the colon.
- **Tested**: *who may* is tried for each operation with no session, a pending second factor, everything but one
  permission, and just the right one (`tests/gateway/web/test_authorization.py`); *carried* with a real central
  (`tests/gateway/web/test_relay.py`); *success* and *bad input* over real sockets (`tests/gateway/web`).
"""
_COLUMNS = "| Operation | Kind | Permission | Answered by | Tested | Purpose |\n|---|---|---|---|---|---|"


def page() -> str:
    """Return the page as it should be."""
    own = sorted((*OPERATIONS, *RELAYED), key=lambda item: (family(item.path), item.path, item.method))
    parts = [_HEAD, _counts(own)]
    for name, items in groupby(own, key=lambda item: family(item.path)):
        rows = "\n".join(_row(item) for item in items)
        parts.append(f"## {name}\n\n{_COLUMNS}\n{rows}\n")
    return "\n".join(parts)


def _counts(own: list[Operation]) -> str:
    relayed = sum(item.answered_by == "central" for item in own)
    return f"{len(own)} operations: the gateway answers {len(own) - relayed}, central {relayed}.\n"


def _row(item: Operation) -> str:
    tested = "who may, carried" if item.answered_by == "central" else "who may, success"
    if item.answered_by == "gateway" and (item.body is not None or item.query is not None):
        tested += ", bad input"
    who = "central" if item.answered_by == "central" else "the gateway"
    kind = "write" if item.writes else "read"
    return f"| `{item.method} {item.path}` | {kind} | {item.rule.text} | {who} | {tested} | {item.purpose} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
