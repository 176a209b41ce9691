"""The commands of `edge-gateway`, one file per group."""

from gateway.cli.app import main

__all__ = ["main"]
