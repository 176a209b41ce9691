"""Relay of requests that only central can answer, with the caller's own session."""
