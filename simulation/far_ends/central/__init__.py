"""The simulated central service. It keeps records in memory, and answers errors in the way of the real interface.

`Central` serves, `seed_site` fills it with records, and `Faults` makes it misbehave. The gateway uses it over HTTP.
"""

from simulation.far_ends.central.accounts import CentralAccount, RoleForm
from simulation.far_ends.central.faults import Chances, ErrorKind, Faults
from simulation.far_ends.central.record_counts import RecordCounts
from simulation.far_ends.central.seed import seed_site
from simulation.far_ends.central.service import Central, ReceivedRequest

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
