"""The commands of `edge-gateway`, one file per group."""
