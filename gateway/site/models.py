"""The site file as frozen models: one per section, unknown keys refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, field_validator, model_validator

from drivers.device import LineKind, NamedLine
from drivers.kinds import AnyDevice
from drivers.settings import DevicePassword, Name, RecordId, SecretName, Section, Slug
from gateway.domain.access import Stance
from gateway.domain.presence import AntiPassback, Apart
from gateway.domain.schedules import Day
from gateway.site.addresses import (
    PLACE,
    Endpoint,
    Network,
    endpoint_of,
    kind_of_line,
    line_of,
    listening_host,
    networks,
)
from gateway.site.api_section import ApiSection
from gateway.site.backup_section import BackupSection
from gateway.site.central_sections import CentralSection, FleetSection, MqttSection
from gateway.site.fields import NamesAuthorities
from gateway.site.roles import ROLES, Role, RoleSpec

if TYPE_CHECKING:
    from drivers.link import LinkSpec


_HOUR = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")

_RTSP = ("rtsp", "rtsps")
_WHEP = ("whep", "wheps")


class WebhooksSection(Section):
    """`[webhooks]`: receivers on private networks that are allowed besides those on the public internet."""

    private_receivers: tuple[str, ...] = Field(default=(), max_length=64)
    ca_file: Annotated[str, NamesAuthorities()] | None = Field(
        default=None, description="authorities to trust besides the machine's own"
    )
    timeout_seconds: Annotated[float, Field(ge=1, le=30)] = 20

    @field_validator("private_receivers")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        networks(value, whose="your receivers")
        return value

    def networks(self) -> tuple[Network, ...]:
        """Return `private_receivers` as networks; a single address is a network of one."""
        return networks(self.private_receivers, whose="your receivers")


class KeepSection(Section):
    """`[keep]`: retention of events, camera events and parking entries; `[storage]` has that of footage."""

    days: int = Field(
        default=400, ge=1, le=3650, description="so long everything, and what [fleet] or [mqtt] has not sent longer"
    )
    most_days: int = Field(default=800, ge=1, le=3650, description="nothing for longer, sent or not")
    most_events: int = Field(
        default=5_000_000, ge=10_000, le=100_000_000, description="the oldest go before there are more"
    )
    consumer_days: int = Field(
        default=30,
        ge=1,
        le=3650,
        description="a server of [fleet] or [mqtt] that took nothing for so long holds nothing",
    )

    @model_validator(mode="after")
    def _at_most_beyond(self) -> Self:
        if self.most_days < self.days:
            raise ValueError(
                f"'most_days' is {self.most_days}, less than the {self.days} of 'days': what was not sent is "
                "kept for longer than the rest, not for less"
            )
        return self


class SiteSection(Section):
    """`[site]`: name, time zone and folder of profiles."""

    name: Name
    timezone: str = "UTC"
    profiles: str | None = Field(default=None, description="folder of device profiles, relative to the site file")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of zones is an OSError
            raise ValueError(f"no time zone {value!r}; write one like 'America/Toronto'") from error
        return value


class PolicySection(Section):
    """`[policy]`: rules for the whole site."""

    command_seconds: float = Field(default=5, ge=0.5, le=60, description="life of a command until its deadline")
    stale_seconds: float = Field(default=5, ge=1, le=60, description="age from which a safety point is unknown")
    stale_cards_hours: float = Field(default=168, gt=0, description="age from which the card list is doubtful")
    anti_passback_by: Literal["card", "owner"] = Field(default="card", description="whose passages are counted")


class EventsSection(Section):
    """`[events]`: footage kept before and after an event."""

    clip_before_seconds: float = Field(default=5, ge=0, le=120)
    clip_after_seconds: float = Field(default=5, ge=0, le=300)


class Link(Section):
    """`[[links]]`: a line to devices.

    `tcp://host:port`, `serial:/dev/serial/by-id/…`, `http://host` (or https) of a device that is asked, or
    `http-listen://host:port` of this machine for devices that push.
    """

    id: Slug
    url: str
    baud: int = Field(default=9600, ge=300, le=921_600)
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    data_bits: Literal[7, 8] = 8
    echoes: bool = Field(default=False, description="what is sent comes back first, as with some two-wire adapters")
    pause_ms: int = Field(default=0, ge=0, le=1000, description="the silence that devices need before each request")
    transaction_numbers: bool = Field(
        default=True, description="false: devices on Modbus TCP answer with other transaction numbers than they get"
    )

    @field_validator("url")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        line_of(value)
        return value

    def line(self) -> Endpoint | str:
        """Return the line that the link occupies: a host and port, or the path of a serial port."""
        return line_of(self.url)

    @property
    def kind(self) -> LineKind:
        """The kind of the line."""
        return kind_of_line(self.url)

    def spec(self) -> LinkSpec:
        """Return the link in the form that drivers take."""
        from drivers.link import LinkSpec  # noqa: PLC0415  # a command without lines starts faster

        return LinkSpec(
            url=self.url,
            baud=self.baud,
            parity=self.parity,
            stop_bits=self.stop_bits,
            data_bits=self.data_bits,
            pause=self.pause_ms / 1000,
            numbers_come_back=self.transaction_numbers,
            echoes=self.echoes,
        )


class PointRef(Section):
    """A named input of a device."""

    device: RecordId
    point: Slug


class InputSection(PointRef):
    """A row of `[[lanes.inputs]]`: an input of the lane. Its role says all that it means for the lane."""

    role: Role = Field(
        description="one of each, but any number with `safety`; `far`: the arming loop of leaving vehicles in a two-way"
        " lane; `fire` opens the gate and keeps it open; `key_switch`: on while somebody works at the gate"
    )

    @property
    def ref(self) -> PointRef:
        """Its point."""
        return PointRef(device=self.device, point=self.point)


@dataclass(frozen=True, slots=True)
class LaneInput:
    """An input of a lane. `index`: its place among those of its role, from 0; `row`: that among all rows."""

    role: Role
    index: int
    ref: PointRef
    row: int

    @property
    def spec(self) -> RoleSpec:
        """The meaning of its role."""
        return ROLES[self.role]

    @property
    def place(self) -> str:
        """Its place in the lane's section."""
        return f"inputs[{self.row}]"


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


class LaneSection(Section):
    """`[[lanes]]`: one way for vehicles, with its gate, readers, loops and cameras."""

    id: Slug
    name: Name
    direction: Literal["entry", "exit", "two-way"] = "entry"
    gate: RecordId
    readers: tuple[RecordId, ...] = ()
    cameras: tuple[RecordId, ...] = ()
    inputs: tuple[InputSection, ...] = Field(description="loops, photocells and switches, each with its role")
    closed_limit: PointRef | None = Field(
        default=None, description="on while the gate is closed, where another device than the gate's own reads that"
    )
    open_limit: PointRef | None = Field(default=None, description="the same while it is open; both or none")
    closes: Literal["device", "gateway"] = "device"
    clear_seconds: float = Field(
        default=1, ge=0.3, le=30, description="closing points are off for so long before a close: loops drop out"
    )
    clear_after_loss_seconds: float = Field(
        default=3, ge=0.3, le=120, description="the same after a start, or after their device was offline"
    )
    opening_seconds: float = Field(default=8, ge=1, le=120, description="until an opening counts as timed out")
    waiting_seconds: float = Field(default=30, ge=2, le=600, description="open without a vehicle until it closes")
    far_readers: tuple[RecordId, ...] = Field(default=(), description="those of 'readers' that stand on that side")
    hold_open_schedule: Name | None = Field(default=None, description="while it is open the gate is held open")
    lock_down_schedule: Name | None = Field(default=None, description="while it is open nobody is let in")
    vend: Literal["momentary", "counted", "supervised"] = "momentary"
    closing_seconds: float = Field(default=15, ge=1, le=120, description="until a closing counts as timed out")
    back_out_seconds: float = Field(default=5, ge=1, le=60, description="both loops free after a grant: it went back")
    held_open_seconds: float = Field(default=60, ge=15, le=600, description="off the closed limit until that is told")
    forced_seconds: float = Field(default=4, ge=0.5, le=60, description="the same without a command")
    vehicle_stuck_seconds: float = Field(default=60, ge=5, le=3600, description="a vehicle under the gate")
    stuck_seconds: float = Field(default=300, ge=10, le=86_400, description="an input that is on counts as stuck")
    plate_settle_seconds: float = Field(default=0.75, ge=0, le=10, description="readings of a plate are collected")
    plate_sure: float = Field(default=0.95, ge=0, le=1, description="a reading this sure is taken at once")
    plate_least: float = Field(default=0.5, ge=0, le=1, description="a reading less sure does not count")
    card_early_seconds: float = Field(
        default=1, ge=0, le=10, description="a card read before its vehicle is seen on the arming loop"
    )
    plate_early_seconds: float = Field(default=3, ge=0, le=30, description="a plate read before the arming loop")
    zones: tuple[Name, ...] = Field(default=(), description="which cards it is for; none: all")
    inside: Slug | None = Field(default=None, description="the area that an entry leads into")
    outside: Slug | None = Field(default=None, description="the area that an entry leads out of; none: the street")
    schedule: Name | None = Field(default=None, description="when the lane itself is open; none: always")
    two_credentials: bool = Field(default=False, description="two different cards or plates for one passage")
    second_seconds: float = Field(default=30, ge=5, le=300, description="how long the first of them waits")
    pin: bool = Field(default=False, description="a card opens only together with its PIN, typed after it")
    pin_digits: int = Field(default=4, ge=4, le=8, description="so many digits end a PIN; a shorter one ends with #")
    pin_seconds: float = Field(default=10, ge=3, le=60, description="how long a card waits for its PIN")
    near_plates: bool = Field(default=False, description="a misread plate may stand for the one it must be")
    doubt: LadderSection = LadderSection()

    @field_validator("inputs")
    @classmethod
    def _one_each(cls, value: tuple[InputSection, ...]) -> tuple[InputSection, ...]:
        found = [one.role for one in value]
        for role, spec in ROLES.items():
            if spec.needed and role not in found:
                raise ValueError(f"needs an input with role {role.value!r}")
            if not spec.many and found.count(role) > 1:
                raise ValueError(f"only one input can have role {role.value!r}")
        return value

    @property
    def ordered_inputs(self) -> tuple[LaneInput, ...]:
        """The lane's inputs in the order of `ROLES`."""
        rows = {role: [row for row, one in enumerate(self.inputs) if one.role is role] for role in ROLES}
        return tuple(
            LaneInput(role, index, self.inputs[row].ref, row)
            for role, found in rows.items()
            for index, row in enumerate(found)
        )

    def points(self, role: Role) -> tuple[PointRef, ...]:
        """Return the points of the inputs with this role."""
        return tuple(one.ref for one in self.inputs if one.role is role)

    @property
    def devices(self) -> tuple[int, ...]:
        """The ids of the lane's gate, readers, and devices with its points (without limit switches), the gate first."""
        return tuple(dict.fromkeys((self.gate, *self.readers, *(one.ref.device for one in self.ordered_inputs))))


class Camera(Section):
    """`[[cameras]]`: a video source. Credentials are named, never written in the URL.

    `rtsp://` or `rtsps://`, or `whep://` (over HTTP) and `wheps://` (over HTTPS) of a WebRTC camera.
    """

    id: RecordId
    name: Name
    url: str = Field(description="`{username}` and `{password}` stand for an account that its path or query holds")
    live_url: str | None = Field(default=None, description="a smaller H.264 stream of the same camera, for live view")
    username: str | None = None
    password: DevicePassword | None = None
    token: SecretName | None = Field(default=None, description="what a WebRTC camera asks for in place of an account")
    transport: Literal["tcp", "udp"] = "tcp"
    audio: Literal["off", "on"] = Field(default="off", description="record its sound too: AAC as it is, G.711 as AAC")
    record: Literal["continuous", "events"] = Field(default="continuous", description="events: only what they pin")
    pre_roll_seconds: int = Field(default=60, ge=5, le=600, description="held in memory for events to pin")

    @field_validator("url", "live_url")
    @classmethod
    def _video(cls, value: str | None) -> str | None:
        if value is not None:
            endpoint_of(value, schemes=(*_RTSP, *_WHEP), has_places=True)
        return value

    @model_validator(mode="after")
    def _one_account(self) -> Self:
        places = {place for url in self._urls() for place in PLACE.findall(url)}
        if (self.username is None) != (self.password is None) and places != {"password"}:
            raise ValueError("'username' and 'password' go together")
        if self.password is None and places:
            raise ValueError("'url' has a place for the account, so 'username' and 'password' are needed")
        if self.token is not None and not all(_scheme(url) in _WHEP for url in self._urls()):
            raise ValueError("only what is at whep:// or wheps:// takes a 'token'")
        if self.token is not None and self.username is not None:
            raise ValueError("either 'token', or 'username' and 'password'")
        if self.audio == "on" and _scheme(self.url) in _WHEP:
            raise ValueError("'audio' is recorded from rtsp:// and rtsps:// alone: WebRTC sends it in another form")
        if self.live_url == self.url:
            raise ValueError("'live_url' is 'url' itself; leave it out, and what is recorded is shown live")
        if self.live_url is not None and self.live_endpoint().host != self.endpoint().host:
            raise ValueError("'live_url' must be on the camera of 'url': its account goes there too")
        return self

    def endpoint(self) -> Endpoint:
        """Return host and port of the camera's stream."""
        return endpoint_of(self.url, schemes=(*_RTSP, *_WHEP), has_places=True)

    def live_endpoint(self) -> Endpoint:
        """Return host and port of the stream for live view: of `live_url`, else of `url`."""
        return endpoint_of(self.live_url or self.url, schemes=(*_RTSP, *_WHEP), has_places=True)

    def _urls(self) -> tuple[str, ...]:
        return (self.url,) if self.live_url is None else (self.url, self.live_url)


def _scheme(url: str) -> str:
    return url.partition(":")[0]


class StorageSection(Section):
    """`[storage]`: limits of what is kept."""

    media_gigabytes: float = Field(default=20, gt=0)
    free_floor_gigabytes: float = Field(default=1, ge=0)
    continuous_days: int = Field(default=30, ge=1, le=3650, description="footage of no event is deleted after so long")
    transaction_days: int = Field(default=90, ge=1, le=3650, description="footage of events, and never before")
    incident_days: int = Field(default=365, ge=1, le=3650, description="footage of events that warn or alarm")
    evidence_megabytes: int = Field(default=200, ge=1, le=10_000, description="largest file that may be uploaded")
    evidence_per_event: int = Field(default=20, ge=0, le=1000, description="files uploaded to one camera event")

    @model_validator(mode="after")
    def _events_for_longer(self) -> Self:
        ladder = ("continuous_days", "transaction_days", "incident_days")
        for shorter, longer in pairwise(ladder):
            if getattr(self, longer) < getattr(self, shorter):
                raise ValueError(
                    f"'{longer}' is {getattr(self, longer)}, less than the {getattr(self, shorter)} of '{shorter}': "
                    "footage of events goes last"
                )
        return self


class LiveSection(Section):
    """`[live]`: live views of cameras. `addresses` are the machine's own; empty: offer all of them to viewers."""

    addresses: tuple[str, ...] = ()
    viewers_per_camera: int = Field(default=8, ge=0, le=100)
    viewers: int = Field(default=24, ge=0, le=1000)
    ice_servers: tuple[str, ...] = Field(
        default=(), description="STUN servers that viewers are told of: stun:host:port"
    )

    @field_validator("addresses")
    @classmethod
    def _own(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            try:
                ip_address(address)
            except ValueError as error:
                raise ValueError(f"{address!r} is not an IP address; write one like '192.168.1.10'") from error
        return value

    @field_validator("ice_servers")
    @classmethod
    def _stun(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for server in value:
            if not re.fullmatch(r"stuns?:[A-Za-z0-9.\-\[\]:]+", server):
                raise ValueError(f"{server!r} is not a STUN server; write one like 'stun:192.168.1.10:3478'")
        return value


class RtspSection(Section):
    """`[rtsp]`: cameras served on to the site's other equipment, at `rtsp://<host>:<port>/camera/<id>`.

    Cameras are recorded 24 to a process: the first 24 are served at `port`, the next at the port after it, and so
    on. Without this section nothing is served.
    """

    host: str = Field(default="0.0.0.0", min_length=1, max_length=253)  # noqa: S104  # other equipment is what it is for
    port: int = Field(default=8554, ge=1, le=65_000)
    username: Name
    password: SecretName

    @field_validator("host")
    @classmethod
    def _listening(cls, value: str) -> str:
        return listening_host(value)


class Site(Section):
    """A whole site file."""

    site: SiteSection
    api: ApiSection = ApiSection()
    central: CentralSection | None = None
    fleet: FleetSection | None = None
    mqtt: MqttSection | None = None
    storage: StorageSection = StorageSection()
    live: LiveSection = LiveSection()
    rtsp: RtspSection | None = None
    policy: PolicySection = PolicySection()
    events: EventsSection = EventsSection()
    keep: KeepSection = KeepSection()
    backup: BackupSection = BackupSection()
    webhooks: WebhooksSection = WebhooksSection()
    links: tuple[Link, ...] = ()
    devices: tuple[AnyDevice, ...] = ()
    areas: tuple[AreaSection, ...] = ()
    schedules: tuple[ScheduleSection, ...] = ()
    holidays: tuple[HolidaySection, ...] = ()
    lanes: tuple[LaneSection, ...] = ()
    cameras: tuple[Camera, ...] = ()

    def named_line(self, link: Link) -> NamedLine:
        """Return a link in the form in which the sections of its devices check it."""
        is_alone = sum(device.link == link.id for device in self.devices) == 1
        return NamedLine(link.id, link.spec(), is_alone=is_alone)
