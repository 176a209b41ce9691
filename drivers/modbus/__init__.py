"""Devices on Modbus: frames (pure), sessions on a bus, and drivers that a profile file describes."""
