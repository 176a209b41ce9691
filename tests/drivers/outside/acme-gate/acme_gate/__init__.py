"""A driver of another distribution: ACME gates, which take JSON over HTTP."""
