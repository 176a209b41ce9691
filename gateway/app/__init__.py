"""The daemon: wiring, devices, watchdog, and notification of systemd."""
