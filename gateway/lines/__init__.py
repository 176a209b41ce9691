"""Technicians' tools for the site's lines: scans for units, frames in words, values of devices."""
