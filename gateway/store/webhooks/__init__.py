"""Webhooks and their queues."""
