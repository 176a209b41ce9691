"""The type of wall times in values that are serialised."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer

from gateway.runtime.clock import iso_utc

WallMicros = Annotated[int, PlainSerializer(iso_utc, return_type=str, when_used="json")]
"""Microseconds since 1970, UTC. JSON has them as ISO 8601 text."""
