"""`edge-gateway users`: who may sign in at the site, what they may do, and the keys of programs."""

from gateway.cli.users.accounts import app

__all__ = ["app"]
