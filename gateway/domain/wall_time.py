"""The type of wall times in values that are serialised."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from gateway.runtime.clock import iso_utc, micros_of


def _micros(value: object) -> object:
    """Return a moment that is ISO 8601 text as microseconds. Raises ValueError."""
    return micros_of(value) if isinstance(value, str) else value


WallMicros = Annotated[int, BeforeValidator(_micros), PlainSerializer(iso_utc, return_type=str, when_used="json")]
"""Microseconds since 1970, UTC. JSON has them as ISO 8601 text."""
