"""Snow entries."""

from __future__ import annotations

from gateway.web.operation import Operation, needs
from gateway.web.relayed.rows import file_of, posts, relayed

_VIEW, _EDIT = needs("can_view_entries"), needs("can_edit_entries")
_ENTRY = "/v1/entry/snow"

OPERATIONS: tuple[Operation, ...] = (
    *posts(
        _ENTRY,
        _VIEW,
        "entry",
        (
            ("", "One snow entry with measurement evidence"),
            ("/list", "List snow entries with bounded operational filters"),
            ("/work-context/preview", "Preview deterministic work context"),
        ),
        reads="all",
    ),
    file_of("POST", f"{_ENTRY}/export", _VIEW, "entry", "Filtered grid of snow entries as CSV", "text/csv"),
    relayed("PUT", f"{_ENTRY}/manual", needs("can_add_entries"), "entry", "Create an audited manual snow entry"),
    relayed("PATCH", _ENTRY, _EDIT, "entry", "Correct, soft-delete or restore a versioned snow entry"),
    *posts(
        _ENTRY,
        _EDIT,
        "entry",
        (
            ("/delete", "Soft-delete a snow entry"),
            ("/restore", "Restore a snow entry"),
            ("/bulk-preview", "Validate up to 100 versioned changes"),
            ("/bulk-commit", "Atomically commit a validated batch"),
            ("/work-context/resolve", "Resolve and freeze work context"),
        ),
    ),
)
