"""The shared-line scheduler: one owner per line, one transaction at a time."""
