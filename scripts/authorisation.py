"""Write `docs/authorisation.md`: which role may do what, from the operations' own rules.

Run it as `python scripts/authorisation.py`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path

from gateway.store import Store
from gateway.web.catalogue import OPERATIONS
from gateway.web.operation import LEGACY_PREFIX, Operation, Rule

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authorisation.md"
_HEAD = """# Who may do what

Made by `make docs` from the rules of the operations that the gateway itself answers; `docs/interface-coverage.md` has
those of central too. A test calls each operation without a session, with a pending second factor, with everything but
one permission, and with just the right one (`tests/gateway/web/test_authorization.py`).

- **yes**: the role has what the rule asks for. **partly**: some requests need more; the rule says what.
- **key**: programs enter by a key with these permissions, under `/api/v1` and for metrics.
- On the local socket, which is for root and the group `edge-gateway` alone, every operation is open.

"""


async def _roles() -> dict[str, frozenset[str]]:
    """Return the roles that a new site has."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder=Path(folder), site_name="", sends=False)
        await store.open()
        try:
            return dict(await store.accounts.roles())
        finally:
            await store.close()


def page() -> str:
    """Return the page as it should be."""
    roles = asyncio.run(_roles())
    names = sorted(roles, key=lambda name: ("*" in roles[name], len(roles[name])))
    rows: defaultdict[tuple[str, bool], list[Operation]] = defaultdict(list)
    for item in OPERATIONS:
        rows[item.rule.text, _by_key(item)].append(item)
    lines = [
        f"| permission | {' | '.join(names)} | key | operations |",
        f"|---|{'---|' * len(names)}---|---|",
    ]
    for (text, by_key), items in sorted(rows.items(), key=lambda row: (row[0][1], row[0][0])):
        rule = items[0].rule
        may = " | ".join("" if by_key else _may(rule, roles[name]) for name in names)
        listed = ", ".join(f"`{item.method} {item.path}`" for item in sorted(items, key=lambda one: one.path))
        lines.append(f"| {text} | {may} | {'yes' if by_key else ''} | {listed} |")
    return _HEAD + "\n".join([*lines, ""])


def _by_key(item: Operation) -> bool:
    return item.by_key or item.path.startswith(LEGACY_PREFIX)


def _may(rule: Rule, permissions: frozenset[str]) -> str:
    if not rule.session:
        return "all"
    if rule.missing(permissions):
        return "no"
    whole = "*" in permissions or set(rule.depending) <= permissions
    return "yes" if whole else "partly"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
