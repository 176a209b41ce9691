"""Card notices on their way down: the ids of changed cards, which the line to central fetches at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Annotated, Protocol

import structlog
from nats.aio.msg import Msg
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.fleet.line import FleetLine
from gateway.fleet.names import FleetName

log = structlog.get_logger(__name__)


class Notice(BaseModel):
    """A notice. `number` counts up by one, so that a lost one shows; without ids it says that notices come."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ids: Annotated[tuple[Annotated[int, Field(gt=0, lt=2**53)], ...], Field(max_length=5000)] = ()
    number: int | None = None


class NoticeTaker(Protocol):
    """The line to central, which fetches noticed cards."""

    def take(self, card_ids: Collection[int], *, number: int | None) -> None:
        """Take a notice."""
        ...

    def lost(self) -> None:
        """Note that notices may be missed from now on."""
        ...


@dataclass(kw_only=True)
class CardsDown:
    """The receiver of card notices. `taker` returns the line to central, None at a site without central."""

    name: str = field(default="cards", init=False)
    fleet_name: FleetName
    taker: Callable[[], NoticeTaker | None]

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Take notices until cancelled. They do not count as coming any more when the line is lost."""
        try:
            async with line.listening(self.fleet_name.cards, self._take):
                works()
                await asyncio.Event().wait()
        finally:
            if (taker := self.taker()) is not None:
                taker.lost()

    async def _take(self, message: Msg) -> None:
        taker = self.taker()
        try:
            notice = Notice.model_validate_json(message.data)
        except ValidationError:
            log.warning("card_notice_unreadable", subject=message.subject)
            if taker is not None:
                taker.lost()
            return
        if taker is not None:
            taker.take(notice.ids, number=notice.number)
