"""Transactions and commercial documents: sales and purchasing."""

from __future__ import annotations

from gateway.web.operation import UNCONFIRMED, XLSX, Operation, either, needs
from gateway.web.relayed.rows import file_of, posts, relayed

_DOCUMENT = "/v1/commercial-document"
_RECURRING = f"{_DOCUMENT}/recurring"
_VIEW_TRANSACTIONS, _ADD_TRANSACTIONS = needs("can_view_transactions"), needs("can_add_transactions")

_TRANSACTIONS: tuple[Operation, ...] = (
    relayed("PUT", "/v1/transaction", _ADD_TRANSACTIONS, "transaction", "Create a transaction"),
    file_of("POST", "/v1/transaction/excel", _VIEW_TRANSACTIONS, "transactions", "Transactions as Excel", XLSX),
    relayed("POST", "/v1/transaction/list", _VIEW_TRANSACTIONS, "transactions", "List transactions", reads=True),
    file_of(
        "POST", "/v1/transaction/reportExcel", _VIEW_TRANSACTIONS, "transactions", "Transaction report as Excel", XLSX
    ),
    relayed("POST", "/v1/transaction/email", UNCONFIRMED, "transaction", "Receipt by e-mail"),
    relayed("POST", "/v1/transaction/sms", UNCONFIRMED, "transaction", "Receipt by SMS"),
    relayed("POST", "/v1/transaction/refund", _ADD_TRANSACTIONS, "transaction", "Refund"),
)

_RECURRING_DOCUMENTS: tuple[Operation, ...] = (
    relayed("POST", _RECURRING, UNCONFIRMED, "template", "Retrieve a recurring template", reads=True),
    relayed(
        "POST",
        f"{_RECURRING}/list",
        either("can_view_sales", "can_view_purchases"),
        "templates",
        "List recurring templates",
        reads=True,
    ),
    relayed("PUT", _RECURRING, UNCONFIRMED, "template", "Create a recurring template"),
    relayed("PATCH", _RECURRING, UNCONFIRMED, "template", "Update a recurring template"),
    relayed("DELETE", _RECURRING, UNCONFIRMED, "template", "Delete a recurring template"),
    relayed("POST", f"{_RECURRING}/run/list", _VIEW_TRANSACTIONS, "runs", "List generation runs", reads=True),
    relayed("POST", f"{_RECURRING}/generate", UNCONFIRMED, "run", "Generate one draft from a template"),
    relayed("POST", f"{_RECURRING}/run/retry", UNCONFIRMED, "run", "Retry a failed run"),
    relayed("POST", f"{_RECURRING}/run/approve", UNCONFIRMED, "run", "Approve a generated draft"),
    relayed(
        "POST",
        f"{_RECURRING}/run-due",
        either("can_add_sales", "can_add_purchases"),
        "runs",
        "Generate all due drafts",
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *_TRANSACTIONS,
    relayed("POST", _DOCUMENT, UNCONFIRMED, "document", "Retrieve a commercial document", reads=True),
    relayed(
        "POST",
        f"{_DOCUMENT}/list",
        either("can_view_sales", "can_view_purchases"),
        "documents",
        "List commercial documents",
        reads=True,
    ),
    relayed("PUT", _DOCUMENT, UNCONFIRMED, "document", "Create a commercial document"),
    relayed("PATCH", _DOCUMENT, UNCONFIRMED, "document", "Update a commercial document"),
    relayed("DELETE", _DOCUMENT, UNCONFIRMED, "document", "Delete a commercial document"),
    relayed(
        "PUT",
        f"{_DOCUMENT}/billed-sale",
        UNCONFIRMED,
        "document",
        "Create a fully-paid billed sale from an online or device payment",
    ),
    relayed(
        "PUT",
        f"{_DOCUMENT}/payment-event",
        UNCONFIRMED,
        "document",
        "Record a non-settled gateway payment event for reconciliation, without revenue",
    ),
    *posts(
        f"{_DOCUMENT}/",
        UNCONFIRMED,
        "document",
        (
            ("invoice/email", "Send a sales invoice by e-mail with a public customer payment link"),
            ("billed-sale/import", "Convert existing paid transactions into billed sales invoices"),
            ("status/transition", "Cancel or void an unposted document, with audited project-billing restoration"),
            ("convert", "Quote to invoice, or purchase order to invoice"),
            ("reservation/summary", "Reservation summary"),
            ("payment/list", "List payments of a document"),
            ("payment/receive", "Receive a payment against a sales invoice"),
            ("payment/receipt", "Receive one payment and allocate it across several sales invoices"),
            ("financing/list", "List financing proposals"),
        ),
        reads=("reservation/summary", "payment/list", "financing/list"),
    ),
    file_of(
        "POST",
        f"{_DOCUMENT}/payment/receipt/pdf",
        UNCONFIRMED,
        "document",
        "Customer payment receipt PDF",
        "application/pdf",
    ),
    relayed(
        "PUT",
        f"{_DOCUMENT}/financing",
        UNCONFIRMED,
        "financing",
        "Save a financing proposal and its payment schedule",
    ),
    relayed(
        "POST",
        f"{_DOCUMENT}/reservation/accept",
        needs("can_accept_sales_quotes"),
        "document",
        "Accept a sales quote and reserve its inventory-tracked leaf lines",
    ),
    relayed(
        "POST",
        f"{_DOCUMENT}/reservation/release",
        needs("can_release_sales_reservations"),
        "document",
        "Release undelivered reserved inventory",
    ),
    relayed(
        "POST",
        f"{_DOCUMENT}/post",
        either("can_bill_sales", "can_credit_sales"),
        "document",
        "Post an invoice to accounting",
    ),
    relayed(
        "POST",
        f"{_DOCUMENT}/pos/checkout",
        needs("can_bill_sales"),
        "document",
        "Convert a POS quote to a posted, shipped and paid invoice",
    ),
    relayed(
        "POST",
        f"{_DOCUMENT}/credit/apply",
        needs("can_credit_sales"),
        "document",
        "Apply a posted credit note against an open invoice, with no duplicate ledger transaction",
    ),
    *_RECURRING_DOCUMENTS,
)
