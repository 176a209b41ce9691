"""Requests that only central can answer, forwarded with the caller's own session."""
