"""Lines of the site for the page: how each unit answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiohttp import web

from drivers.bus.line_quality import REPLY_BOUNDS, UnitQuality
from gateway.domain.writes import JsonObject
from gateway.problems.found import SiteState
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.envelope import success
from gateway.web.operation import Operation, needs

LINE_LIST = Operation("GET", "/status/line/list", needs("can_view_devices"), "lines")


@dataclass(frozen=True, kw_only=True)
class StatusLines:
    """`/status/line/list`: lines with their units. Times are in milliseconds."""

    state: Callable[[], SiteState]

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(LINE_LIST, self._list),)

    async def _list(self, _: web.Request, __: Caller) -> web.StreamResponse:
        return success(lines=list(_lines(self.state())), bounds=[bound * 1000 for bound in REPLY_BOUNDS])


def _lines(site: SiteState) -> Iterator[JsonObject]:
    names = {device.device_id: device.name for device in site.devices}
    for line in site.lines:
        devices = {unit: [names[number] for number in numbers] for unit, numbers in line.devices.items()}
        yield {
            "name": line.name,
            "down": line.quality.down_reason,
            "strays": line.quality.strays,
            "units": [_unit(unit, devices.get(unit.unit, [])) for unit in line.quality.units],
        }


def _unit(unit: UnitQuality, devices: list[str]) -> JsonObject:
    return {
        "unit": unit.unit,
        "devices": list(devices),
        "reply_times": list(unit.reply_times),
        "failed": {failure.value: count for failure, count in unit.failed.items()},
        "reply": None if unit.reply_seconds is None else round(unit.reply_seconds * 1000, 2),
        "allowed": unit.allowed_seconds * 1000,
        "failing": None if unit.failing is None else unit.failing.value,
        "losses": unit.losses,
    }
