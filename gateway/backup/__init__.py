"""Backup and restore of a gateway: its databases, its site file and its secrets, not its footage."""
