"""The interface document's tables against the catalogue: every operation, and its permission as the document has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.web.catalogue import OPERATIONS
from gateway.web.catalogue import PAGE as OF_THE_PAGE
from gateway.web.operation import Operation, Rule
from gateway.web.relayed import OPERATIONS as RELAYED

DOCUMENT = Path(__file__).with_name("interface.md").read_text("utf-8")
PREFIXES = {"Banking and reconciliation": "/v1/banking/", "Projects and work orders": "/v1/work/"}
CATALOGUE = (*OPERATIONS, *RELAYED)

NOT_OF_THE_DOCUMENT = {
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/v1/camera/event/evidence/file/{}"),
    ("GET", "/v1/camera/live/{}/{}"),
    ("POST", "/v1/camera/whep/{}"),
    ("OPTIONS", "/v1/camera/whep/{}"),
    ("PATCH", "/v1/camera/whep/{}/{}"),
    ("DELETE", "/v1/camera/whep/{}/{}"),
    ("OPTIONS", "/v1/camera/whep/{}/{}"),
    ("GET", "/api/v1/video/recordings/{}/clip"),
}
"""What the gateway serves besides, beyond its own page."""
WITHOUT_SESSION = {
    "/",
    "/health/live",
    "/health/ready",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/v1/auth/login",
    "/v1/auth/oauth2",
    "/v1/sso/authorize",
    "/v1/sso/callback",
    "/v1/sso/saml/metadata",
    "/v1/sso/saml/login",
    "/v1/sso/saml/acs",
    "/v1/sso/saml/exchange",
}
"""The document lets only `/` in without a session; nobody has one at the probes, at discovery and at signing in."""


@dataclass(frozen=True)
class Row:
    """One operation of the document. `permission` is None in the family that states none."""

    method: str
    path: str
    permission: str | None


def rows() -> Iterator[Row]:
    for section in re.split(r"^### ", DOCUMENT, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        prefix = next((found for start, found in PREFIXES.items() if heading.startswith(start)), "")
        yield from table_rows(text, prefix)
        yield from prose_rows(text)


def table_rows(text: str, prefix: str) -> Iterator[Row]:
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|") or set(line) <= set("|- "):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "Method" in cells:
            columns = cells
            continue
        row = dict(zip(columns, cells, strict=True))
        methods = re.findall(r"[A-Z]+", row["Method"])
        paths = paths_of(row.get("Path suffix") or row["Path"], prefix)
        permissions = [row.get("Permission")] * len(methods)
        if " / " in row["Method"]:
            permissions = row["Permission"].split(" / ")
        elif "all permissions unconfirmed" in DOCUMENT.partition(text)[0].splitlines()[-1]:
            permissions = ["unconfirmed"] * len(methods)
        for method, permission in zip(methods, permissions, strict=True):
            for path in paths:
                yield Row(method, path, permission)


def paths_of(cell: str, prefix: str) -> list[str]:
    """The paths of a cell. One that is written short stands beside the one before it."""
    found: list[str] = []
    for item in re.sub(r"\([^)]*\)", "", cell).split(","):
        path = item.strip()
        beside = found[-1].removeprefix(prefix) if found else ""
        if path.count("/") == 1 and path.startswith("/") and beside.startswith("/v1/"):
            path = beside.rpartition("/")[0] + path
        elif found and "/" not in path and "/" in beside and path != beside.partition("/")[0]:
            path = f"{beside.rpartition('/')[0]}/{path}"
        found.append(prefix + path)
    return found


def prose_rows(text: str) -> Iterator[Row]:
    """Lists in sentences: every `path` in code, with the permissions that the same or the one sentence names."""
    for line in text.replace("`POST ", "`").splitlines():
        written = [item for item in re.findall(r"`([^`]+)`", line) if item.startswith("/")]
        if not line.startswith(("- `/v1", "Paths are")):
            continue
        must, _, may = ([*re.findall(r"`(can_\w+)`", half)] for half in line.partition("Depending on action"))
        permission = " and ".join(must) or "unconfirmed"
        if may:
            permission += f" (may also need {', '.join(may)})"
        for path in paths_of(", ".join(written), ""):
            yield Row("POST", path, permission)


def rule_of(row: Row) -> Rule:
    """The permission column as a rule."""
    text = row.permission or ""
    if text.startswith(("unconfirmed", "not stated")):
        return Rule(confirmed=False)
    if text.startswith("none"):
        return Rule(session=row.path not in WITHOUT_SESSION)
    groups = re.sub(r"\((?!can_\w+ or )[^)]*\)", "", text).strip()
    besides = tuple(re.findall(r"can_\w+", text.removeprefix(groups)))
    if " / " in groups:
        one_of = tuple(groups.split(" / "))
        return Rule(groups=(one_of,), depending=one_of)
    return Rule(
        groups=tuple(tuple(re.findall(r"can_\w+", group)) for group in groups.split(" and ")), depending=besides
    )


def plain(path: str) -> str:
    """The path whatever its places are called."""
    return re.sub(r"\{[^}]*\}|<[^>]*>", "{}", path.partition(" ")[0])


def key(item: Row | Operation) -> tuple[str, str]:
    return item.method, plain(item.path)


STATED = [*rows()]


def test_the_document_is_read_whole():
    count = Counter(row.path.split("/")[1:3][-1] for row in rows())
    assert sum(count.values()) == 281
    assert (count["auth"], count["access"], count["banking"], count["work"], count["entry"]) == (5, 20, 59, 18, 17)
    assert Row("POST", "/v1/banking/payment-batch/cancel", "can_create_bank_payments") in STATED
    assert Row("PATCH", "/v1/tag", "can_edit_tags") in STATED
    assert Row("POST", "/v1/chargingstation/stop", "unconfirmed") in STATED
    assert Row("POST", "/v1/dashboards/incidents", "can_view_incidents") in STATED


def test_no_operation_is_there_twice():
    assert [item for item, times in Counter(key(row) for row in STATED).items() if times > 1] == []
    assert [item for item, times in Counter(key(item) for item in CATALOGUE).items() if times > 1] == []


def test_every_operation_of_the_document_is_in_the_catalogue_and_no_other():
    stated, known = {key(row) for row in STATED}, {key(item) for item in CATALOGUE}
    assert stated - known == set(), "missing"
    assert known - stated == NOT_OF_THE_DOCUMENT | {key(item) for item in OF_THE_PAGE}, "too many"


def test_every_permission_is_the_document_s():
    known = {key(item): item.rule for item in CATALOGUE}
    for row in STATED:
        if row.permission is None:
            continue
        said, rule = rule_of(row), known[key(row)]
        assert rule.confirmed == said.confirmed, row
        assert rule.session == (row.path not in WITHOUT_SESSION), row
        if said.confirmed:
            assert set(map(frozenset, rule.groups)) == set(map(frozenset, said.groups)), row
            assert set(rule.depending) == set(said.depending), row


def test_only_what_the_document_has_is_relayed():
    stated = {key(row) for row in STATED}
    assert all(key(item) in stated and item.answered_by == "central" for item in RELAYED)
    assert all(item.answered_by == "gateway" for item in OPERATIONS)
    assert all(item.purpose for item in RELAYED)


def test_rules_in_words():
    words = {f"{item.method} {item.path}": item.rule.text for item in CATALOGUE}
    assert words["GET /"] == "everybody, without a session"
    assert words["GET /health/live"] == "unconfirmed: everybody, without a session"
    assert words["POST /v1/auth/logout"] == "any account"
    assert words["POST /v1/access/sms"] == "unconfirmed"
    assert words["GET /v1/camera/status/{id}"] == "unconfirmed: can_view_cameras"
    assert words["POST /v1/sso/admin/providers"] == "can_edit_settings or can_edit_users"
    assert words["POST /v1/access/device"] == ("(can_view_access_cards or can_view_guests) and can_control_devices")
    assert words["POST /v1/commercial-document/post"] == ("can_bill_sales / can_credit_sales (depends on the request)")
    assert words["POST /v1/work/tasks/{id}/workspace"] == (
        "can_view_projects (a request may also need can_view_project_time, can_view_work_orders)"
    )
