"""Devices that speak lines of text over a serial port."""
