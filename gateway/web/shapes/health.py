"""What probes are told."""

from __future__ import annotations

from gateway.web.shapes.answers import Answer


class RootAnswer(Answer):
    """The server runs. Its version is told to those who signed in."""

    name: str
    version: str | None = None


class LiveAnswer(Answer):
    """The process answers. Its version, and what is not ready, are told to those who signed in."""

    version: str | None = None
    not_ready: tuple[str, ...] | None = None


class ReadyAnswer(Answer):
    """Every lane can admit vehicles and let them out. Those who signed in are told which cannot, and why."""

    not_ready: tuple[str, ...] | None = None
