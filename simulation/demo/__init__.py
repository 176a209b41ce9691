"""The demo: a simulated site with the real gateway, each in a process of its own."""
