"""Repeated writes told by their `Idempotency-Key`, for a central that honours it. The interface promises none."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from gateway.demo.central.answers import JsonObject, Refusal

_KEPT = 200_000


class KeysSeen:
    """What was answered to which key. Without `honoured` nothing is remembered."""

    def __init__(self, *, honoured: bool) -> None:
        self._honoured = honoured
        self._answers: OrderedDict[tuple[str, str], tuple[bytes, JsonObject]] = OrderedDict()

    def answered(self, operation: str, key: str, body: bytes) -> JsonObject | None:
        """The answer to this write when it came before. Raises Refusal (409) when it came with another body."""
        known = self._answers.get((operation, key))
        if known is None:
            return None
        if known[0] != hashlib.sha256(body).digest():
            raise Refusal(409, "Idempotency-Key: was used for another body")
        return known[1]

    def remember(self, operation: str, key: str, body: bytes, answer: JsonObject) -> None:
        """A write was carried out."""
        if self._honoured and key:
            self._answers[operation, key] = (hashlib.sha256(body).digest(), answer)
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
