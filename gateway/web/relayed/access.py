"""Operations on access cards that only central can do: prepaid credit, sending, and instruments of snow operations."""

from __future__ import annotations

from gateway.web.operation import UNCONFIRMED, Operation, needs
from gateway.web.relayed.rows import posts, relayed

OPERATIONS: tuple[Operation, ...] = (
    relayed(
        "POST",
        "/v1/access/instruments/list",
        needs("can_view_access_cards"),
        "instruments",
        "List access instruments for snow operations",
        reads=True,
    ),
    *posts(
        "/v1/access/credit/",
        UNCONFIRMED,
        "credit",
        (
            ("preview", "Preview a prepaid credit movement"),
            ("commit", "Commit a movement"),
            ("purchase", "Commit a purchase"),
            ("consume", "Commit a consume"),
            ("refund", "Commit a refund"),
            ("adjustment", "Commit an adjustment"),
            ("reversal", "Commit a reversal"),
            ("history", "Credit history"),
        ),
        reads=("history",),
    ),
    relayed("POST", "/v1/access/sms", UNCONFIRMED, "access_card", "Send card by SMS"),
    relayed("POST", "/v1/access/email", UNCONFIRMED, "access_card", "Send card by e-mail"),
)
