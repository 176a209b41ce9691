"""Site file sections for access: schedules, holidays, areas, and behaviour in doubt."""

from __future__ import annotations

import re
from datetime import date, time
from typing import Annotated

from pydantic import BeforeValidator, Field

from drivers.settings import Name, Section, Slug
from gateway.domain.access import Stance
from gateway.domain.presence import AntiPassback, Apart
from gateway.domain.schedules import Day

_HOUR = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def _written_hour(value: object) -> object:
    """Refuse anything but a time of day; pydantic would accept a bare number as seconds."""
    if isinstance(value, time) or (isinstance(value, str) and _HOUR.fullmatch(value)):
        return value
    raise ValueError("must be a time of day from 00:00 to 23:59 with two digits each, as '06:00'")


def _end_of_day(value: object) -> object:
    return "00:00" if value == "24:00" else value


class WindowSection(Section):
    """Hours on some days. An end that is not after the start is on the next day."""

    days: Annotated[tuple[Day, ...], Field(min_length=1, description="mon … sun, and holiday")]
    start: Annotated[time, BeforeValidator(_written_hour)]
    end: Annotated[time, BeforeValidator(_written_hour), BeforeValidator(_end_of_day)]


class ScheduleSection(Section):
    """`[[schedules]]`: when something is allowed, in the site's time zone. `id` is what central's cards call it."""

    id: Name
    windows: tuple[WindowSection, ...] = ()


class HolidaySection(Section):
    """`[[holidays]]`: a day on which only windows for holidays begin."""

    date: date
    name: str = Field(default="", max_length=120)


class AreaSection(Section):
    """`[[areas]]`: a part of the site whose vehicles are counted."""

    id: Slug
    name: Name
    limit: int | None = Field(default=None, ge=1, description="how many may be inside; none: no limit")
    anti_passback: AntiPassback = AntiPassback.OFF
    anti_passback_minutes: float = Field(default=10, gt=0, le=10_080, description="for anti_passback = 'timed'")
    first_person: bool = Field(default=False, description="nobody enters before a card that may open it, each day")
    shared: bool = Field(default=False, description="all gateways of the fleet's site share it; needs `[fleet]`")
    apart: Apart = Field(
        default=Apart.LOCAL, description="who enters while the other gateways cannot be asked, if it is shared"
    )


class LadderSection(Section):
    """`[lanes.doubt]`: refuse (`secure`), decide with what there is (`usual`) or let pass (`open`), for each doubt."""

    stale_cards: Stance = Stance.USUAL
    clock: Stance = Stance.USUAL
    records: Stance = Stance.USUAL
    no_cards: Stance = Stance.SECURE
