"""The state of the site, which commands read from a running gateway."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

from gateway.cli.client import RunningGatewayClient
from gateway.domain.errors import ConfigError
from gateway.domain.server_lines import CentralStatus
from gateway.runtime.clock import iso_utc
from gateway.web.answers import AnswerPart, OutboxBooks


class PointNow(AnswerPart):
    """An input as last reported."""

    name: str
    state: str


class TroubleNow(AnswerPart):
    """Something wrong with a lane."""

    text: str


class CommandNow(AnswerPart):
    """The last command to a lane's gate. `detail`: why it went no further."""

    id: str
    state: str
    detail: str


class LaneNow(AnswerPart):
    """A lane. `unable`: the troubles because of which it cannot admit vehicles or let them out."""

    lane_id: str
    name: str
    phase: str
    gate_id: int
    position: str
    vehicle: str
    under: str
    note: str
    order_text: str
    command: CommandNow | None
    unable: tuple[TroubleNow, ...]
    troubles: tuple[TroubleNow, ...]


class RefusalsNow(AnswerPart):
    """The messages of a device that were refused: how many, why the last one, and its begin."""

    count: int
    reason: str
    said: str


class DeviceNow(AnswerPart):
    """A device. `detail` says why it does not answer."""

    device_id: int
    name: str
    kind: str
    online: bool | None
    since: datetime
    detail: str
    position: str | None
    points: tuple[PointNow, ...]
    refusals: RefusalsNow


class CameraNow(AnswerPart):
    """A camera. `last_segment_at` is the end of its newest footage."""

    camera_id: int
    name: str
    condition: str
    detail: str
    last_segment_at: datetime | None
    bits_per_second: int
    reconnects: int


class AreaNow(AnswerPart):
    """Vehicles inside an area."""

    area_id: str
    name: str
    count: int
    limit: int | None


class GatewayNow(AnswerPart):
    """The gateway itself. `headline` is the verdict in a few words."""

    site: str
    version: str
    timezone: str
    ready: bool
    headline: str


class StorageNow(AnswerPart):
    """The storage of footage, in words."""

    text: str


class SiteNow(AnswerPart):
    """The whole site."""

    gateway: GatewayNow
    lanes: tuple[LaneNow, ...]
    devices: tuple[DeviceNow, ...]
    cameras: tuple[CameraNow, ...]
    areas: tuple[AreaNow, ...]
    storage: StorageNow | None
    central: CentralStatus | None
    books: OutboxBooks | None

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.gateway.timezone)

    def time(self, moment: datetime | str | int) -> str:
        """Return a moment in the site's time zone, as people write it. A text is one that the gateway wrote.

        A number is of microseconds since 1970.
        """
        text = iso_utc(moment) if isinstance(moment, int) else moment
        known = datetime.fromisoformat(text) if isinstance(text, str) else text
        return known.astimezone(self.zone).strftime(_TIME)

    def lane(self, named: str) -> LaneNow:
        """Return the lane with this id or name. Raises ConfigError, which lists the site's lanes."""
        return _one("lane", named, [((lane.lane_id, lane.name), lane) for lane in self.lanes])

    def device(self, named: str) -> DeviceNow:
        """Return the device with this id or name. Raises ConfigError, which lists the site's devices."""
        return _one("device", named, [((str(item.device_id), item.name), item) for item in self.devices])

    def camera(self, named: str) -> CameraNow:
        """Return the camera with this id or name. Raises ConfigError, which lists the site's cameras."""
        return _one("camera", named, [((str(item.camera_id), item.name), item) for item in self.cameras])


class SiteAnswer(AnswerPart):
    """The answer of `/status/now`."""

    snapshot: SiteNow


_TIME = "%Y-%m-%d %H:%M:%S %Z"
_T = TypeVar("_T")
PATH = "/status/now"


def site_now(gateway: RunningGatewayClient) -> SiteNow:
    """Return the present state of the site. Raises what `RunningGatewayClient.answer_of` raises."""
    return gateway.answer_of(SiteAnswer, PATH, None).snapshot


def _one(kind: str, named: str, known: list[tuple[tuple[str, str], _T]]) -> _T:
    for names, found in known:
        if named.casefold() in (name.casefold() for name in names):
            return found
    there = ", ".join(f"{key} ({name})" for (key, name), _ in known) or "none"
    raise ConfigError(f"there is no {kind} {named!r}; the {kind}s of this site: {there}")
