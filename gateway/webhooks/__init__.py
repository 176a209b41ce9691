"""Webhooks: events of the site, delivered at least once to each registered receiver."""
