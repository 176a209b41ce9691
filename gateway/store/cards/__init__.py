"""Access cards and grants."""
