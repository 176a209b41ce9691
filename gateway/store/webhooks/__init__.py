"""Webhooks and what waits for each."""
