"""The site file. `load` reads and checks it; `check` checks a site that was read already."""

from gateway.site.api_section import ApiSection, TlsSection
from gateway.site.central_sections import CentralSection, FleetSection, MqttSection, is_jwt_file, is_seed
from gateway.site.difference import Change, Difference, difference
from gateway.site.fault import SiteFault
from gateway.site.faults import SiteFaults, check
from gateway.site.file_accounts import FileAccount
from gateway.site.load import (
    LoadedSite,
    doubtful,
    find_profile,
    load,
    load_whole,
    profile_folders,
    secrets_beside,
    secrets_folder,
    unproven,
)
from gateway.site.models import (
    AreaSection,
    Camera,
    EventsSection,
    InputSection,
    LaneInput,
    LaneSection,
    Link,
    PointRef,
    PolicySection,
    Site,
    SiteSection,
    StorageSection,
)
from gateway.site.roles import ROLES, Role, RoleSpec
from gateway.site.secrets import NewSecret, Secrets

__all__ = [
    "ROLES",
    "ApiSection",
    "AreaSection",
    "Camera",
    "CentralSection",
    "Change",
    "Difference",
    "EventsSection",
    "FileAccount",
    "FleetSection",
    "InputSection",
    "LaneInput",
    "LaneSection",
    "Link",
    "LoadedSite",
    "MqttSection",
    "NewSecret",
    "PointRef",
    "PolicySection",
    "Role",
    "RoleSpec",
    "Secrets",
    "Site",
    "SiteFault",
    "SiteFaults",
    "SiteSection",
    "StorageSection",
    "TlsSection",
    "check",
    "difference",
    "doubtful",
    "find_profile",
    "is_jwt_file",
    "is_seed",
    "load",
    "load_whole",
    "profile_folders",
    "secrets_beside",
    "secrets_folder",
    "unproven",
]
