"""Access cards: read, written, and as a sheet."""
