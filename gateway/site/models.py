"""The site file as frozen models: one per section, unknown keys refused."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from gateway.site.addresses import Endpoint, LineKind, endpoint_of, kind_of_line, line_of
from gateway.site.fields import Name, RecordId, SecretName, Slug
from gateway.site.fields import Section as _Section
from gateway.site.http_devices import HikvisionBarrierDevice, PlateCamera


class SiteSection(_Section):
    """`[site]`: who and where."""

    name: Name
    timezone: str = "UTC"
    profiles: str | None = Field(default=None, description="folder of device profiles, relative to the site file")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"no time zone {value!r}; write one like 'America/Toronto'") from error
        return value


class Account(_Section):
    """`[[api.accounts]]`: who may sign in at the site. The password is the secret of that name."""

    username: Name
    password: SecretName
    permissions: tuple[str, ...] = Field(default=("*",), description="permission names of the interface, or '*'")


class ApiSection(_Section):
    """`[api]`: where the interface and the page are served."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    port: int = Field(default=8480, ge=0, le=65535, description="0 takes a free port")
    accounts: tuple[Account, ...] = ()
    session_idle_minutes: int = Field(default=60, ge=1, le=10_080)


class CentralSection(_Section):
    """`[central]`: the service above. Without this section the site stands alone."""

    url: str
    username: Name
    password: SecretName
    ca_file: str | None = None
    pull_seconds: float = Field(default=60, ge=0.5, le=86_400)
    timeout_seconds: float = Field(default=15, ge=1, le=120)

    @field_validator("url")
    @classmethod
    def _http(cls, value: str) -> str:
        endpoint_of(value, schemes=("http", "https"))
        return value.rstrip("/")

    def endpoint(self) -> Endpoint:
        """Host and port of central."""
        return endpoint_of(self.url, schemes=("http", "https"))


class StorageSection(_Section):
    """`[storage]`: how much may be kept."""

    media_gigabytes: float = Field(default=20, gt=0)
    free_floor_gigabytes: float = Field(default=1, ge=0)


class PolicySection(_Section):
    """`[policy]`: rules for the whole site."""

    command_seconds: float = Field(default=5, ge=0.5, le=60, description="life of a command until its deadline")
    stale_seconds: float = Field(default=5, ge=1, le=60, description="age from which a safety point is unknown")


class EventsSection(_Section):
    """`[events]`: what is kept around an event."""

    clip_before_seconds: float = Field(default=5, ge=0, le=120)
    clip_after_seconds: float = Field(default=5, ge=0, le=300)
    keep_days: int = Field(default=90, ge=1, le=3650)


class Link(_Section):
    """`[[links]]`: a line to devices.

    `tcp://host:port`, `serial:/dev/serial/by-id/…`, `http://host` (or https) of a device that is asked, or
    `http-listen://host:port` of this machine for devices that push.
    """

    id: Slug
    url: str
    baud: int = Field(default=9600, ge=300, le=921_600)
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    echoes: bool = Field(default=False, description="what is sent comes back first, as with some two-wire adapters")

    @field_validator("url")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        line_of(value)
        return value

    def line(self) -> Endpoint | str:
        """What the link occupies: a host and port, or the path of a serial port. Two links never share one."""
        return line_of(self.url)

    @property
    def kind(self) -> LineKind:
        """What goes over it."""
        return kind_of_line(self.url)


class ModbusDevice(_Section):
    """What any unit on a Modbus line has. Several share a line."""

    id: RecordId
    name: Name
    link: Slug
    profile: Slug
    unit: int = Field(default=1, ge=0, le=247)
    framing: Literal["tcp", "rtu"] = "tcp"


class ModbusGateDevice(ModbusDevice):
    """A gate controller on Modbus, driven by a profile."""

    driver: Literal["modbus-gate"]


class ModbusIoDevice(ModbusDevice):
    """An input module on Modbus: points alone, for loops that are not wired to the gate's own controller."""

    driver: Literal["modbus-io"]


class SerialReaderDevice(_Section):
    """A card reader that sends one line of text per card."""

    id: RecordId
    name: Name
    driver: Literal["serial-reader"]
    link: Slug
    terminator: str = Field(default="\r\n", min_length=1, max_length=2)
    prefix: str = ""
    form: Literal["text", "hex", "decimal", "wiegand26"] = "text"


GateDevice = ModbusGateDevice | HikvisionBarrierDevice
ReaderDevice = SerialReaderDevice | PlateCamera
DRIVERS = frozenset(
    {
        "modbus-gate",
        "modbus-io",
        "serial-reader",
        "hikvision-barrier",
        "hikvision-plates",
        "dahua-plates",
        "axis-plates",
        "plate-recognizer",
    }
)
Device = Annotated[GateDevice | ReaderDevice | ModbusIoDevice, Field(discriminator="driver")]


class PointRef(_Section):
    """A named input of a device."""

    device: RecordId
    point: Slug


class LaneSection(_Section):
    """`[[lanes]]`: one way for vehicles, with its gate, readers, loops and cameras."""

    id: Slug
    name: Name
    direction: Literal["entry", "exit"] = "entry"
    gate: RecordId
    readers: tuple[RecordId, ...] = ()
    cameras: tuple[RecordId, ...] = ()
    arming: PointRef
    closing: PointRef
    safety: tuple[PointRef, ...] = Field(default=(), description="photocells and the like, besides the closing loop")
    closes: Literal["device", "gateway"] = "device"
    opening_seconds: float = Field(default=8, ge=1, le=120, description="until an opening counts as timed out")
    waiting_seconds: float = Field(default=30, ge=2, le=600, description="open without a vehicle until it closes")


class Camera(_Section):
    """`[[cameras]]`: a video source. Credentials are named, never written in the URL."""

    id: RecordId
    name: Name
    url: str
    username: str | None = None
    password: SecretName | None = None
    transport: Literal["tcp", "udp"] = "tcp"

    @field_validator("url")
    @classmethod
    def _rtsp(cls, value: str) -> str:
        endpoint_of(value, schemes=("rtsp", "rtsps"))
        return value

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("'username' and 'password' go together")
        return self


class DemoSection(_Section):
    """`[demo]`: where the simulated field takes wishes. Only the demo writes this."""

    control: str


class Site(_Section):
    """A whole site file."""

    site: SiteSection
    api: ApiSection = ApiSection()
    central: CentralSection | None = None
    storage: StorageSection = StorageSection()
    policy: PolicySection = PolicySection()
    events: EventsSection = EventsSection()
    links: tuple[Link, ...] = ()
    devices: tuple[Device, ...] = ()
    lanes: tuple[LaneSection, ...] = ()
    cameras: tuple[Camera, ...] = ()
    demo: DemoSection | None = None
