"""The site file as frozen models: one per section, unknown keys refused."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from gateway.site.addresses import Endpoint, endpoint_of, line_of

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _slug(value: str) -> str:
    if not _SLUG.fullmatch(value):
        raise ValueError("must be 1 to 40 small letters, digits, '-' or '_', a letter or digit first")
    return value


def _secret_name(value: str) -> str:
    # The text is not repeated: somebody may have written the secret itself here.
    if not _SECRET_NAME.fullmatch(value):
        raise ValueError("must be the name of a secret: 1 to 64 letters, digits, '.', '-' or '_'")
    return value


Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]
Slug = Annotated[str, AfterValidator(_slug)]
SecretName = Annotated[str, AfterValidator(_secret_name)]
RecordId = Annotated[int, Field(ge=1, lt=2_000_000_000)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
    """`[[links]]`: a line to devices: `tcp://host:port` or `serial:/dev/serial/by-id/…`."""

    id: Slug
    url: str
    baud: int = Field(default=9600, ge=300, le=921_600)
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1

    @field_validator("url")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        line_of(value)
        return value

    def line(self) -> Endpoint | str:
        """What the link occupies: a host and port, or the path of a serial port. Two links never share one."""
        return line_of(self.url)


class ModbusGateDevice(_Section):
    """A gate controller on Modbus, driven by a profile."""

    id: RecordId
    name: Name
    driver: Literal["modbus-gate"]
    link: Slug
    profile: Slug
    unit: int = Field(default=1, ge=0, le=247)
    framing: Literal["tcp", "rtu"] = "tcp"


class SerialReaderDevice(_Section):
    """A card reader that sends one line of text per card."""

    id: RecordId
    name: Name
    driver: Literal["serial-reader"]
    link: Slug
    terminator: str = Field(default="\r\n", min_length=1, max_length=2)
    prefix: str = ""
    form: Literal["text", "hex", "decimal", "wiegand26"] = "text"


class OsdpReaderDevice(_Section):
    """A card reader or keypad on OSDP. The key is the secret of that name: 32 hexadecimal digits."""

    id: RecordId
    name: Name
    driver: Literal["osdp-reader"]
    link: Slug
    address: int = Field(default=0, ge=0, le=126)
    key: SecretName


DRIVERS = frozenset({"modbus-gate", "serial-reader", "osdp-reader"})
Device = Annotated[ModbusGateDevice | SerialReaderDevice | OsdpReaderDevice, Field(discriminator="driver")]
READERS = (SerialReaderDevice, OsdpReaderDevice)
"""Devices that read credentials, and that a lane may name as its readers."""


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
