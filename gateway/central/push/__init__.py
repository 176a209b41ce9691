"""The site's records and writes, delivered to central through the outbox."""
