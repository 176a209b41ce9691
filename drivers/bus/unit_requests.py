"""Requests to one unit on a shared line, each a single transaction that is never repeated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from drivers.bus.bus import Bus
from drivers.bus.transactions import Answer, Exchange, Priority
from drivers.contract import Forbidden, LinkError, MonotonicSeconds, ProtocolViolation

Reply = TypeVar("Reply")


class UnitRequests:
    """The base of each family's requests.

    Args:
        bus: the line.
        unit: the unit's address.
        timeout: how long an answer may take, in seconds.
        shortest: the seconds to which the line may cut the time-out of a scan.
    """

    def __init__(self, *, bus: Bus, unit: int, timeout: float, shortest: float = 0.0) -> None:
        self._bus = bus
        self._unit = unit
        self._timeout = timeout
        self._shortest = shortest

    @property
    def down_reason(self) -> str | None:
        """The reason why the line is down, None while it is open."""
        return self._bus.down_reason

    def telling_interruptions(self, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Inside this context, call `told` whenever an open line is lost, before it is opened again."""
        return self._bus.telling_interruptions(told)

    async def _transact(
        self,
        exchange: Exchange[Reply],
        priority: Priority,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None = None,
    ) -> Answer[Reply]:
        """Send a request and return its answer. For a command, garbage is a LinkError: the device may have obeyed."""
        try:
            return await self._bus.transact(
                exchange,
                priority=priority,
                deadline=deadline,
                timeout=self._timeout,
                forbidden=forbidden,
                shortest=self._shortest,
            )
        except ProtocolViolation as violation:
            if priority is not Priority.COMMAND:
                raise
            raise LinkError(f"unit {self._unit} answered a command with garbage: {violation}") from violation
