"""Simulated far ends: barriers, devices on lines and over HTTP, vehicles, and central. For the demo and the tests."""
