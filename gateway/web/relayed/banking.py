"""Banking and reconciliation. The account aggregator's name is a path parameter, because central decides on it."""

from __future__ import annotations

from gateway.web.operation import Operation, needs
from gateway.web.relayed.rows import file_of, posts, relayed

_BANKING = "/v1/banking/"
_VIEW, _EDIT = needs("can_view_bank_settings"), needs("can_edit_bank_settings")
_CREATE = needs("can_create_bank_payments")
_RECONCILE = needs("can_edit_accounting_reconciliation")

_BATCHES: tuple[Operation, ...] = (
    *posts(
        f"{_BANKING}payment-batch",
        _VIEW,
        "payment_batch",
        (("", "One payment batch"), ("/list", "List payment batches")),
        reads="all",
    ),
    relayed("PUT", f"{_BANKING}payment-batch", _CREATE, "payment_batch", "Create a payment batch"),
    *posts(
        f"{_BANKING}payment-batch/",
        _CREATE,
        "payment_batch",
        (
            ("validate", "Validate a payment batch"),
            ("request-approval", "Request approval of a payment batch"),
            ("cancel", "Cancel a payment batch"),
        ),
    ),
    *posts(
        f"{_BANKING}payment-batch/",
        needs("can_approve_bank_payments"),
        "payment_batch",
        (("approve", "Approve a payment batch"), ("reject", "Reject a payment batch")),
    ),
    *posts(
        f"{_BANKING}payment-batch/",
        needs("can_reverse_bank_payments"),
        "payment_batch",
        (("reverse", "Reverse a payment batch"),),
    ),
    *posts(
        f"{_BANKING}payment-batch/",
        needs("can_deliver_bank_payments"),
        "payment_batch",
        (("submit", "Submit a payment batch"), ("generate-file", "Generate the EFT/AFT file of a payment batch")),
    ),
    file_of(
        "POST",
        f"{_BANKING}payment-batch/download-file",
        needs("can_download_bank_payment_files"),
        "file",
        "Download the file of a payment batch",
        "application/octet-stream",
        reads=False,
    ),
    *posts(
        f"{_BANKING}payment-batch/",
        needs("can_resolve_bank_payment_acknowledgements"),
        "payment_batch",
        (("status", "Status of a payment batch"),),
    ),
    *posts(
        f"{_BANKING}settlement-exception",
        _VIEW,
        "settlement_exception",
        (("", "One settlement exception"), ("/list", "List settlement exceptions")),
        reads="all",
    ),
    *posts(
        f"{_BANKING}settlement-exception/",
        needs("can_resolve_bank_payment_settlement_exceptions"),
        "settlement_exception",
        (("resolve", "Resolve a settlement exception"),),
    ),
)

_PAYMENTS: tuple[Operation, ...] = (
    *posts(
        f"{_BANKING}request-for-payment",
        _VIEW,
        "request_for_payment",
        (
            ("", "One request for payment"),
            ("/list", "List requests for payment"),
            ("/status", "Status of a request for payment"),
        ),
        reads="all",
    ),
    relayed("PUT", f"{_BANKING}request-for-payment", _EDIT, "request_for_payment", "Create a request for payment"),
    *posts(
        f"{_BANKING}request-for-payment/",
        _EDIT,
        "request_for_payment",
        (("submit", "Submit a request for payment"), ("cancel", "Cancel a request for payment")),
    ),
    *posts(
        f"{_BANKING}real-time-payment",
        _VIEW,
        "real_time_payment",
        (
            ("", "One real-time payment"),
            ("/list", "List real-time payments"),
            ("/status", "Status of a real-time payment"),
            ("/options", "Options of real-time payments"),
        ),
        reads="all",
    ),
    relayed("PUT", f"{_BANKING}real-time-payment", _EDIT, "real_time_payment", "Create a real-time payment"),
    *posts(
        f"{_BANKING}real-time-payment/",
        _EDIT,
        "real_time_payment",
        (("submit", "Submit a real-time payment"), ("cancel", "Cancel a real-time payment")),
    ),
    *posts(
        f"{_BANKING}wire-payment",
        _VIEW,
        "wire_payment",
        (
            ("", "One wire payment"),
            ("/list", "List wire payments"),
            ("/validate", "Validate a wire payment"),
            ("/status", "Status of a wire payment"),
            ("/track", "Track a wire payment"),
        ),
        reads=("", "/list", "/status", "/track"),
    ),
    relayed("PUT", f"{_BANKING}wire-payment", _EDIT, "wire_payment", "Create a wire payment"),
    relayed("POST", f"{_BANKING}wire-payment/submit", _EDIT, "wire_payment", "Submit a wire payment"),
)

_RECONCILIATION: tuple[Operation, ...] = (
    *posts(
        f"{_BANKING}reconciliation-session",
        needs("can_view_accounting_reconciliation"),
        "reconciliation_session",
        (("/list", "List reconciliation sessions"), ("", "One reconciliation session")),
        reads="all",
    ),
    relayed(
        "PUT",
        f"{_BANKING}reconciliation-session",
        _RECONCILE,
        "reconciliation_session",
        "Create a reconciliation session",
    ),
    *posts(
        f"{_BANKING}reconciliation-session/",
        _RECONCILE,
        "reconciliation_session",
        (("close", "Close a reconciliation session"),),
    ),
    *posts(
        f"{_BANKING}reconciliation-session/",
        needs("can_reopen_bank_reconciliation_sessions"),
        "reconciliation_session",
        (("reopen", "Reopen a reconciliation session"),),
    ),
    *posts(
        f"{_BANKING}imported-transaction/",
        _VIEW,
        "imported_transactions",
        (("list", "List imported bank transactions"),),
        reads="all",
    ),
    *posts(
        f"{_BANKING}imported-transaction/",
        _EDIT,
        "imported_transaction",
        (
            ("post", "Post an imported bank transaction"),
            ("match", "Match an imported bank transaction"),
            ("bulk-post", "Post several imported bank transactions"),
        ),
    ),
    *posts(
        f"{_BANKING}import-mapping-rule/",
        _VIEW,
        "import_mapping_rules",
        (("list", "List import mapping rules"),),
        reads="all",
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *posts(
        f"{_BANKING}workspace/",
        _VIEW,
        "workspace",
        (
            ("overview", "Overview of banking"),
            ("payees", "Payees of the banking workspace"),
            ("settlements", "Settlements of the banking workspace"),
        ),
        reads="all",
    ),
    *posts(f"{_BANKING}provider/", _VIEW, "providers", (("list", "List bank providers"),), reads="all"),
    *posts(
        f"{_BANKING}connection",
        _VIEW,
        "connection",
        (
            ("/validate", "Validate a bank connection"),
            ("", "One bank connection"),
            ("/list", "List bank connections"),
        ),
        reads=("", "/list"),
    ),
    relayed("PUT", f"{_BANKING}connection", _EDIT, "connection", "Save a bank connection"),
    relayed("PATCH", f"{_BANKING}connection", _EDIT, "connection", "Update a bank connection"),
    relayed("DELETE", f"{_BANKING}connection", _EDIT, "connection", "Disable a bank connection"),
    *_BATCHES,
    *_PAYMENTS,
    *posts(
        f"{_BANKING}{{aggregator}}/",
        _EDIT,
        "connection",
        (
            ("link-token", "Link token of the bank-account aggregator"),
            ("public-token/exchange", "Exchange the aggregator's public token"),
        ),
    ),
    *posts(f"{_BANKING}transaction/", _EDIT, "transactions", (("import", "Import bank transactions"),)),
    *_RECONCILIATION,
)
