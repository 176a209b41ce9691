"""The commands of `edge-gateway`, one module per group."""

from gateway.cli.app import main

__all__ = ["main"]
