"""The site file: what is at this site. `load` reads and checks it; `check` judges one already read."""

from gateway.site.faults import Fault, SiteFaults, check
from gateway.site.load import find_profile, load, profile_folders, secrets_beside, secrets_folder
from gateway.site.models import (
    READERS,
    Account,
    ApiSection,
    Camera,
    CentralSection,
    DemoSection,
    Device,
    EventsSection,
    LaneSection,
    Link,
    ModbusGateDevice,
    OsdpReaderDevice,
    PointRef,
    PolicySection,
    SerialReaderDevice,
    Site,
    SiteSection,
    StorageSection,
)
from gateway.site.new_secrets import NewSecret
from gateway.site.osdp_keys import key_of
from gateway.site.secrets import Secrets

__all__ = [
    "READERS",
    "Account",
    "ApiSection",
    "Camera",
    "CentralSection",
    "DemoSection",
    "Device",
    "EventsSection",
    "Fault",
    "LaneSection",
    "Link",
    "ModbusGateDevice",
    "NewSecret",
    "OsdpReaderDevice",
    "PointRef",
    "PolicySection",
    "Secrets",
    "SerialReaderDevice",
    "Site",
    "SiteFaults",
    "SiteSection",
    "StorageSection",
    "check",
    "find_profile",
    "key_of",
    "load",
    "profile_folders",
    "secrets_beside",
    "secrets_folder",
]
