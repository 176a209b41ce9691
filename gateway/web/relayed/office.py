"""Promotions, analytics, organization, invoice capture, companies, schedules, tags, documents and EV charging."""

from __future__ import annotations

from gateway.web.operation import UNCONFIRMED, Operation, may_also_need, needs
from gateway.web.relayed.rows import file_of, kept, posts, relayed, upload

_PROMOTIONS: tuple[Operation, ...] = (
    *posts(
        "/v1/promotions",
        needs("can_view_promotions"),
        "promotions",
        (
            ("", "One promotion"),
            ("/code", "One promotion code"),
            ("/list", "List promotions"),
            ("/code/list", "List promotion codes"),
        ),
        reads="all",
    ),
    *kept("/v1/promotions", "promotion", "promotions", "a promotion"),
    *kept("/v1/promotions/code", "code", "promotions", "a promotion code"),
    *posts(
        "/v1/promotions/",
        UNCONFIRMED,
        "promotions",
        (
            ("filters", "Filters of promotions"),
            ("sms", "Send a promotion by SMS"),
            ("email", "Send a promotion by e-mail"),
            ("device", "Send a promotion to a device"),
            ("code/apply", "Apply a promotion code"),
        ),
        reads=("filters",),
    ),
)

_FIGURES: tuple[Operation, ...] = (
    *posts(
        "/v1/analytics/",
        UNCONFIRMED,
        "analytics",
        (
            ("revenue", "Revenue"),
            ("entries", "Entries"),
            ("top_zones", "Zones that are used most"),
            ("top_customers", "Customers who come most"),
            ("peak_hours", "Peak hours"),
            ("vs_prior", "Against the period before"),
            ("payment_breakdown", "Payments by kind"),
            ("day_of_week", "By day of the week"),
        ),
        reads="all",
    ),
    *posts(
        "/v1/dashboards/",
        UNCONFIRMED,
        "dashboard",
        (
            ("system", "System dashboard"),
            ("site", "Site dashboard"),
            ("zones", "Zones dashboard"),
            ("devices", "Devices dashboard"),
            ("operations", "Operations dashboard"),
            ("revenue", "Revenue dashboard"),
        ),
        reads="all",
    ),
    relayed(
        "POST", "/v1/dashboards/incidents", needs("can_view_incidents"), "dashboard", "Incidents dashboard", reads=True
    ),
)

_ORGANIZATION: tuple[Operation, ...] = (
    relayed("GET", "/v1/organization/modules", UNCONFIRMED, "modules", "Modules of the organization"),
    relayed("POST", "/v1/billing/authority", UNCONFIRMED, "authority", "Billing authority"),
    # The payment processor's name is a path parameter, because central decides on it.
    relayed("POST", "/v1/billing/{processor}/notification", UNCONFIRMED, "", "Notification of a payment processor"),
    relayed("GET", "/billing/checkout", UNCONFIRMED, "checkout", "Checkout page", page=True),
    relayed("POST", "/v1/billing/checkout", UNCONFIRMED, "checkout", "Check out"),
    relayed("GET", "/v1/organization/billing", UNCONFIRMED, "billing", "Billing of the organization"),
    relayed("POST", "/v1/organization/billing", UNCONFIRMED, "billing", "Change the billing of the organization"),
)

_INVOICE_CAPTURE = posts(
    "/v1/invoice-capture/",
    needs("can_view_accounting_transactions")
    & needs("can_view_documents")
    & may_also_need("can_add_accounting_transactions", "can_view_chart_of_accounts", "can_view_taxes"),
    "invoice_capture",
    (
        ("options", "Options of invoice capture"),
        ("enqueue", "Enqueue an invoice for capture"),
        ("retry", "Retry a capture"),
        ("reject", "Reject a captured invoice"),
        ("approve", "Approve a captured invoice"),
    ),
    reads=("options",),
)

_RECORDS: tuple[Operation, ...] = (
    *posts(
        "/v1/companies",
        needs("can_view_companies"),
        "companies",
        (("", "One company"), ("/list", "List companies"), ("/filters", "Filters of companies")),
        reads="all",
    ),
    *kept("/v1/companies", "company", "companies", "a company"),
    *posts(
        "/v1/schedules/",
        needs("can_view_schedules"),
        "schedules",
        (("list", "List schedules"), ("filters", "Filters of schedules")),
        reads="all",
    ),
    *kept("/v1/schedules", "schedule", "schedules", "a schedule"),
    *posts(
        "/v1/tag/", needs("can_view_tags"), "tags", (("list", "List tags"), ("filters", "Filters of tags")), reads="all"
    ),
    *kept("/v1/tag", "tag", "tags", "a tag"),
    *posts(
        "/v1/document",
        needs("can_view_transactions"),
        "documents",
        (("", "One document"), ("/list", "List documents")),
        reads="all",
    ),
    upload("PUT", "/v1/document/upload", needs("can_add_transactions"), "document", "Store a file as a document"),
    file_of(
        "GET",
        "/v1/document/{id}/download",
        needs("can_view_transactions"),
        "document",
        "Download a document",
        "application/octet-stream",
    ),
    relayed(
        "DELETE",
        "/v1/document",
        needs("can_delete_transactions"),
        "document",
        "Delete a document's file, and its metadata softly",
    ),
    *posts(
        "/v1/chargingstation/",
        UNCONFIRMED,
        "charging_station",
        (
            ("list", "List charging stations"),
            ("start", "Start charging"),
            ("stop", "Stop charging"),
            ("status", "Status of charging"),
        ),
        reads=("list", "status"),
    ),
)

OPERATIONS: tuple[Operation, ...] = (*_PROMOTIONS, *_FIGURES, *_ORGANIZATION, *_INVOICE_CAPTURE, *_RECORDS)
