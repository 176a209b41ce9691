"""`GET /metrics`: the site and the gateway in numbers, for Prometheus."""
