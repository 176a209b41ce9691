"""Callers on the local socket: anybody who may open it has every permission, without a password."""

from __future__ import annotations

import pwd
import socket
import struct

from aiohttp import web

from gateway.web.auth.callers import Caller, Carrier
from gateway.web.operation import EVERYTHING

_CREDENTIALS = struct.Struct("3i")


def local_caller(request: web.Request) -> Caller | None:
    """Return the caller on the local socket, named `local:<user>`; None for a request from the network.

    The user comes from the kernel (unix(7), SO_PEERCRED). In a user namespace, as systemd's `PrivateUsers=` creates,
    every user but root and the service's own appears as `nobody`.
    """
    transport = request.transport
    if transport is None or isinstance(transport.get_extra_info("peername"), tuple):  # an address of the network
        return None
    end = transport.get_extra_info("socket")
    if end is None or end.family != socket.AF_UNIX:
        return None
    _, uid, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Caller(
        username=f"local:{_name_of(uid)}",
        permissions=frozenset({EVERYTHING}),
        carrier=Carrier.LOCAL,
        role="local",
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
