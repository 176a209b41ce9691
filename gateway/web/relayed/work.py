"""Projects and work orders."""

from __future__ import annotations

from gateway.web.operation import UNCONFIRMED, Operation, may_also_need, needs
from gateway.web.relayed.rows import file_of, posts, relayed, upload

_WORK = "/v1/work/"
_PROJECTS, _ORDERS = needs("can_view_projects"), needs("can_view_work_orders")
_TIME, _FINANCIALS = needs("can_view_project_time"), needs("can_view_project_financials")
_DOCUMENTS = f"{_WORK}orders/{{id}}/documents"

OPERATIONS: tuple[Operation, ...] = (
    *posts(
        _WORK,
        _PROJECTS,
        "items",
        (
            ("projects/query", "Query projects"),
            ("tasks/query", "Query tasks"),
            ("my-work/query", "Query one's own work"),
        ),
        reads="all",
    ),
    relayed(
        "POST",
        f"{_WORK}projects/{{id}}/workspace",
        _PROJECTS & may_also_need("can_view_project_time", "can_view_work_orders", "can_view_project_financials"),
        "workspace",
        "A project's workspace, by tab",
        reads=True,
    ),
    relayed(
        "POST",
        f"{_WORK}tasks/{{id}}/workspace",
        _PROJECTS & may_also_need("can_view_project_time", "can_view_work_orders"),
        "workspace",
        "A task's workspace, by tab",
        reads=True,
    ),
    relayed("POST", f"{_WORK}time/query", _TIME, "items", "Query time entries", reads=True),
    relayed("POST", f"{_WORK}orders/query", _ORDERS, "items", "Query work orders", reads=True),
    relayed("POST", f"{_WORK}orders/{{id}}/workspace", _ORDERS, "workspace", "A work order's workspace", reads=True),
    relayed("POST", f"{_WORK}billing/sources/query", _FINANCIALS, "items", "Query billing sources", reads=True),
    upload("POST", _DOCUMENTS, needs("can_manage_work_orders"), "document", "Upload evidence of a work order"),
    upload(
        "PUT",
        _DOCUMENTS,
        needs("can_manage_work_orders"),
        "document",
        "Upload evidence of a work order (legacy multipart compatibility)",
    ),
    file_of(
        "GET",
        f"{_DOCUMENTS}/{{param}}/download",
        _ORDERS,
        "document",
        "Download a document of a work order",
        "application/octet-stream",
    ),
    *posts(
        _WORK,
        UNCONFIRMED,
        "command",
        (
            ("project/command", "Idempotent command to a project"),
            ("task/command", "Idempotent command to a task"),
            ("time/command", "Idempotent command to time entries"),
            ("order/command", "Idempotent command to a work order"),
            ("team/command", "Idempotent command to a team"),
            ("billing/command", "Append-only project billing command"),
        ),
    ),
)
