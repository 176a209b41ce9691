"""Lanes: the pure machine of one way for vehicles, and the runner that gives it a life. HTTP and SQL do not live here."""
