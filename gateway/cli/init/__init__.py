"""`edge-gateway init`: from a fresh package to a gateway that serves its page."""

from gateway.cli.init.command import init

__all__ = ["init"]
