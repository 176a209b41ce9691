"""`edge-gateway init`: the set-up of a new site, from the installed package to a gateway that serves its page."""

from gateway.cli.init.command import init

__all__ = ["init"]
