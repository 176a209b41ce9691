"""`edge-gateway users`: accounts of the site, their roles, and the keys of programs."""

from gateway.cli.users.accounts import app

__all__ = ["app"]
