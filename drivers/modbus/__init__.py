"""Devices on Modbus: frames (pure), sessions on a bus, and drivers of devices that a profile file describes."""
