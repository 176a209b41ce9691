"""Webhooks: what happened at the site, sent to whoever registered for it, at least once."""
