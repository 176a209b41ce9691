"""Devices: read, set up, and gates commanded."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs
from gateway.web.http.bodies import ById, Cursored
from gateway.web.shapes.devices import CommandAnswer, DeviceAnswer, DeviceConfigBody, DevicesAnswer, NewDeviceBody

_VIEW = needs("can_view_devices")
_CONTROL = needs("can_control_devices")

DEVICE_LIST = Operation(
    "POST", "/v1/device/list", _VIEW, "devices", purpose="List devices", body=Cursored, answer=DevicesAnswer, reads=True
)
DEVICE = Operation(
    "POST", "/v1/device", _VIEW, "device", purpose="One device by its id", body=ById, answer=DeviceAnswer, reads=True
)
DEVICE_PUT = Operation(
    "PUT",
    "/v1/device",
    needs("can_add_devices"),
    "device",
    purpose="Create a device",
    body=NewDeviceBody,
    answer=DeviceAnswer,
)
DEVICE_CONFIG = Operation(
    "PATCH",
    "/v1/device/config",
    needs("can_edit_devices"),
    "device",
    purpose="Set up a device",
    body=DeviceConfigBody,
    answer=DeviceAnswer,
)
DEVICE_OPEN = Operation(
    "POST", "/v1/device/open", _CONTROL, "device", purpose="Open a gate", body=ById, answer=CommandAnswer
)
DEVICE_CLOSE = Operation(
    "POST", "/v1/device/close", _CONTROL, "device", purpose="Close a gate", body=ById, answer=CommandAnswer
)

OPERATIONS: tuple[Operation, ...] = (
    DEVICE_LIST,
    DEVICE,
    DEVICE_PUT,
    DEVICE_CONFIG,
    DEVICE_OPEN,
    DEVICE_CLOSE,
)
