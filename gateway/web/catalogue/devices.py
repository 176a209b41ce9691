"""Devices: read, set up, and gates commanded."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs

DEVICE_LIST = Operation("POST", "/v1/device/list", needs("can_view_devices"), "devices")
DEVICE = Operation("POST", "/v1/device", needs("can_view_devices"), "device")
DEVICE_PUT = Operation("PUT", "/v1/device", needs("can_add_devices"), "device")
DEVICE_CONFIG = Operation("PATCH", "/v1/device/config", needs("can_edit_devices"), "device")
DEVICE_OPEN = Operation("POST", "/v1/device/open", needs("can_control_devices"), "device")
DEVICE_CLOSE = Operation("POST", "/v1/device/close", needs("can_control_devices"), "device")

OPERATIONS: tuple[Operation, ...] = (
    DEVICE_LIST,
    DEVICE,
    DEVICE_PUT,
    DEVICE_CONFIG,
    DEVICE_OPEN,
    DEVICE_CLOSE,
)
