"""Lanes: the pure machine of one way for vehicles, and the runner that gives it a life. No HTTP, no SQL."""
