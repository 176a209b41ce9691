"""Simulated central service in memory, with the interface's own error habits.

`Central` serves; `seed_site` fills it; `Faults` makes it misbehave. The gateway reaches it over HTTP alone.
"""

from gateway.demo.central.accounts import CentralAccount, RoleForm
from gateway.demo.central.books import Books
from gateway.demo.central.faults import Chances, ErrorKind, Faults
from gateway.demo.central.seed import seed_site
from gateway.demo.central.service import Central, ReceivedRequest

__all__ = [
    "Books",
    "Central",
    "CentralAccount",
    "Chances",
    "ErrorKind",
    "Faults",
    "ReceivedRequest",
    "RoleForm",
    "seed_site",
]
