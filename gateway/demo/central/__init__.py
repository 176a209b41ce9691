"""The simulated central service. It keeps records in memory, and answers errors in the way of the real interface.

`Central` serves, `seed_site` fills it with records, and `Faults` makes it misbehave. The gateway uses it over HTTP.
"""

from gateway.demo.central.accounts import CentralAccount, RoleForm
from gateway.demo.central.faults import Chances, ErrorKind, Faults
from gateway.demo.central.record_counts import RecordCounts
from gateway.demo.central.seed import seed_site
from gateway.demo.central.service import Central, ReceivedRequest

__all__ = [
    "Central",
    "CentralAccount",
    "Chances",
    "ErrorKind",
    "Faults",
    "ReceivedRequest",
    "RecordCounts",
    "RoleForm",
    "seed_site",
]
