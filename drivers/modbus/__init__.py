"""Devices on Modbus: frames (pure), requests on a bus, and drivers of devices that a profile file describes."""
