"""Camera events and their footage."""
