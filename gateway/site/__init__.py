"""The site file: what is at this site. `load` reads and checks it; `check` judges one already read."""

from gateway.site.fault import Fault
from gateway.site.faults import SiteFaults, check
from gateway.site.load import find_profile, load, profile_folders, secrets_beside, secrets_folder
from gateway.site.models import (
    Account,
    ApiSection,
    AreaSection,
    Camera,
    CentralSection,
    DemoSection,
    Device,
    EventsSection,
    LaneSection,
    Link,
    ModbusGateDevice,
    PointRef,
    PolicySection,
    SerialReaderDevice,
    Site,
    SiteSection,
    StorageSection,
)
from gateway.site.secrets import Secrets

__all__ = [
    "Account",
    "ApiSection",
    "AreaSection",
    "Camera",
    "CentralSection",
    "DemoSection",
    "Device",
    "EventsSection",
    "Fault",
    "LaneSection",
    "Link",
    "ModbusGateDevice",
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
    "load",
    "profile_folders",
    "secrets_beside",
    "secrets_folder",
]
