"""The daemon: wiring, devices, watchdog and the systemd notification."""
