"""Operations that this gateway answers itself as soon as a handler is bound to them; until then central does."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs
from gateway.web.catalogue.relayed.row import kept, posts

OPERATIONS: tuple[Operation, ...] = (
    *posts(
        "/v1/entry/",
        needs("can_view_entries"),
        "entries",
        (
            ("excel", "Entries as Excel"),
            ("list", "List parking entries"),
            ("report", "Entries for the report view"),
            ("reportExcel", "Entry report as Excel"),
        ),
    ),
    *kept("/v1/entry", "entry", "entries", "a parking entry", methods=("PATCH", "PUT")),
)
